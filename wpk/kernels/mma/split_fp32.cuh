// fp32 products on the tensor cores, as three of tf32: each operand is the sum of two tf32 numbers,
//
//   a = big + small + rest    big the nearest tf32 number (11 bits), small the 11 bits that follow
//   a b = small_a big_b + big_a small_b + big_a big_b    and small_a small_b, under 2^-22 |a b|, is left out
//
// The idea is CUTLASS's 3xTF32 and Ootomo and Yokota's ("Recovering single precision accuracy from Tensor Cores while
// surpassing the FP32 theoretical peak performance", 2022): since tensor cores cut what they add to an accumulator
// instead of rounding it, they add few terms from zero, and ordinary fp32 additions add those sums.
//
// Splitting takes two instructions a number; what would treat extremes as fp32 does takes seven. So:
// - Infinities, and numbers from 2^128 - 2^116 on, which round to infinity, give no number in every sum that they
//   reach, where fp32 has infinity or no number. Products that overflow may give no number instead of infinity,
//   those within 2^-10 of it too.
// - Operands under 2^-112 are exact to 2^-136 only, the smallest tf32 number.
#pragma once

#include <wpk/kernels/mma/mma.cuh>

namespace wpk
{

// Names products of fp32 by three of tf32.
struct SplitFp32
{
};

template <>
struct MmaStored<SplitFp32> : MmaStored<Tf32>
{
};

// The parts of fragments, in registers of mma or wgmma. `small` is not rounded: the unit cuts what is beyond its bits.
template <int Tiles, int Words>
struct Tf32Parts
{
    uint32 big[Tiles][Words], small[Tiles][Words];

    WPK_DEVICE explicit Tf32Parts(const uint32 (&fragments)[Tiles][Words])
    {
        WPK_UNROLL
        for (int i = 0; i < Tiles; ++i)
        {
            WPK_UNROLL
            for (int word = 0; word < Words; ++word)
            {
                const float value = asFloat(fragments[i][word]);
                big[i][word] = roundToTf32(value);
                small[i][word] = asUint32(value - asFloat(big[i][word]));
            }
        }
    }
};

// What tensor cores cut off sums they cut towards zero, so that all products of a network would lean to that side. It
// is given back as it is on average: a unit in the last place where one of a sum's last bits is set, as after cuts;
// where none is, as of small integers, nothing was cut. Bits: how many are looked at, one for each sum of a big part
// and another that is cut on the way to one that is added to `totals`, up to three. The bias of one is 0.6 of 2^-24, of
// two 0.8 and of four 1.3; a unit in the last place is 1.44 on average.
template <int Bits, int Count>
WPK_DEVICE void giveBackCuts(float (&totals)[Count])
{
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
    {
        const bool isCut = (asUint32(totals[i]) & ((1u << Bits) - 1)) != 0;
        totals[i] = isCut ? fmaf(totals[i], 0x1p-24f, totals[i]) : totals[i]; // infinities and NaN stay
    }
}

// The same of what mmaTile added up; other types keep what they have.
template <class T, class Sum, int TM, int TN>
WPK_DEVICE void giveBackCuts(T, Sum (&acc)[TM][TN][4])
{
    if constexpr (isSame<T, SplitFp32>)
    {
        WPK_UNROLL
        for (int i = 0; i < TM; ++i)
        {
            WPK_UNROLL
            for (int j = 0; j < TN; ++j)
                giveBackCuts<1>(acc[i][j]);
        }
    }
}

// acc[i][j] += a[i] * b[j] as mmaTile(Tf32, …), of fp32 operands. The products of a step are summed from zero, what is
// small first.
template <int TM, int TN>
WPK_DEVICE void mmaTile(SplitFp32, float (&acc)[TM][TN][4], const uint32 (&a)[TM][4], const uint32 (&b)[TN][2])
{
    const Tf32Parts<TN, 2> partsB(b);
    WPK_UNROLL
    for (int i = 0; i < TM; ++i)
    {
        const uint32 row[1][4] = {{a[i][0], a[i][1], a[i][2], a[i][3]}};
        const Tf32Parts<1, 4> partsA(row);
        float sums[1][TN][4] = {};
        mmaTile(Tf32{}, sums, partsA.small, partsB.big);
        mmaTile(Tf32{}, sums, partsA.big, partsB.small);
        mmaTile(Tf32{}, sums, partsA.big, partsB.big);
        WPK_UNROLL
        for (int j = 0; j < TN * 4; ++j)
            acc[i][j / 4][j % 4] += sums[0][j / 4][j % 4];
    }
}

} // namespace wpk
