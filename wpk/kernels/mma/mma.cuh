// Tensor-core products of a warp: ldmatrix and mma.sync (sm_80 and later).
//
// All 32 lanes of the warp call these together. With g = lane / 4 and t = lane % 4, a 16 x 8
// accumulator tile D = A * B + D lies in the registers of a warp as
//
//   D, 4 floats:  [0] (row g, column 2t)   [1] (g, 2t + 1)   [2] (g + 8, 2t)   [3] (g + 8, 2t + 1)
//
// Half and Bfloat16, m16n8k16, two values a register (the lower index in the low half):
//   A, 4 words:   [0] (row g, k 2t..2t+1)  [1] (g + 8, 2t..)  [2] (g, 2t + 8..)  [3] (g + 8, 2t + 8..)
//   B, 2 words:   [0] (k 2t..2t+1, column g)   [1] (k 2t + 8..2t + 9, column g)
//
// In half a step, m16n8k8, only A[0], A[1] and B[0].
//
// Tf32, m16n8k8, one value a register (a float; roundToTf32 rounds, the unit itself cuts the low 13 bits):
//   A, 4 words:   [0] (row g, k t)   [1] (g + 8, t)   [2] (g, t + 4)   [3] (g + 8, t + 4)
//   B, 2 words:   [0] (k t, column g)   [1] (k t + 4, column g)
//
// Bytes, m16n8k32, four values a register, D in int32: as Half, with k 4t..4t+3 and 4t + 16..4t + 19 in the places of
// k 2t..2t+1 and 2t + 8..2t + 9. So do 8-bit floats lie; the lower two values of all registers are one m16n8k16 of
// Half, and the upper two another. Their own instruction is that on sm_90 and sm_100, and adds in fewer bits on others.
//
// loadMatrix4 fills four registers from four 8 x 8 tiles of 16-bit values: lane i gives the address of
// row i % 8 of tile i / 8 (16 bytes, 16-byte aligned) and receives, of each tile, (row g, columns 2t..2t+1);
// loadMatrix4Transposed gives (rows 2t..2t+1, column g) instead. So for a 16 x 16 tile of A stored
// row by row, lane i addresses row i % 16 and k (i / 16) * 8. For 16 columns of B (two B fragments,
// words 0-1 and 2-3): stored as [column][k], loadMatrix4 with lane i at column (i % 8) + (i / 16) * 8 and
// k ((i / 8) % 2) * 8; stored as [k][column], loadMatrix4Transposed with lane i at k i % 16, column (i / 16) * 8.
// For Tf32 a tile row of 16 bytes holds four values, for Bytes sixteen: untransposed, the same pattern gives the A and
// B above.
#pragma once

#include <wpk/kernels/numbers/scalar.cuh>

namespace wpk
{

// Names the type of mmaTile's operands; the values lie in memory as float.
struct Tf32
{
};

// Names products of 8 bits: A and B each int8 or uint8, whose sums are exact as long as int32 holds them; or each
// Float8E4m3 or Float8E5m2, which are unpacked to Half, that holds them, and added as its products are.
template <class A, class B>
struct Bytes
{
};

// The types in shared memory of mmaTile(T, …)'s operands, A (Type) and B, and that of its sums.
template <class T>
struct MmaStored
{
    using Type = T;
    using TypeB = T;
    using Sum = float;
};
template <>
struct MmaStored<Tf32>
{
    using Type = float;
    using TypeB = float;
    using Sum = float;
};
template <class A, class B>
struct MmaStored<Bytes<A, B>>
{
    static_assert(sizeof(A) == 1 && sizeof(B) == 1, "bytes");
    static_assert(isFloat8<A> == isFloat8<B>, "both integers, or both floating point");
    using Type = A;
    using TypeB = B;
    using Sum = Select<isFloat8<A>, float, int32>;
};

namespace detail
{

WPK_DEVICE void loadMatrix4Any(uint32 (&registers)[4], SharedAddress row, bool transposed)
{
#if WPK_ON_GPU
    if (transposed)
    {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
            : "r"(row)
            : "memory");
    }
    else
    {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
            : "=r"(registers[0]), "=r"(registers[1]), "=r"(registers[2]), "=r"(registers[3])
            : "r"(row)
            : "memory");
    }
#else
    emulated::LoadMatrixOperands operands{registers, row, transposed};
    wpk_emulator_collective(~0u, emulated::Collective::loadMatrix, &operands);
#endif
}

#if WPK_ON_GPU
#define WPK_MMA_SYNC(SHAPE, TYPE)                                                       \
    asm volatile("mma.sync.aligned." SHAPE ".row.col.f32." TYPE "." TYPE                \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <class T>
WPK_DEVICE void mmaSync(float (&d)[4], const uint32 (&a)[4], const uint32 (&b)[2])
{
    if constexpr (isSame<T, Half>)
        WPK_MMA_SYNC("m16n8k16", "f16");
    else if constexpr (isSame<T, Bfloat16>)
        WPK_MMA_SYNC("m16n8k16", "bf16");
    else
        WPK_MMA_SYNC("m16n8k8", "tf32");
}
#undef WPK_MMA_SYNC

#define WPK_MMA_SYNC(TYPE)                                                  \
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE      \
                 ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};" \
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                    \
        : "r"(a[0]), "r"(a[1]), "r"(b[0]))

template <class T>
WPK_DEVICE void mmaSyncHalf(float (&d)[4], const uint32 (&a)[2], const uint32 (&b)[1])
{
    if constexpr (isSame<T, Half>)
        WPK_MMA_SYNC("f16");
    else
        WPK_MMA_SYNC("bf16");
}
#undef WPK_MMA_SYNC

#define WPK_MMA_SYNC(A, B)                                                              \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." A "." B                       \
                 ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])                                \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))

template <class T>
WPK_DEVICE void mmaSync(int32 (&d)[4], const uint32 (&a)[4], const uint32 (&b)[2])
{
    if constexpr (isSame<T, Bytes<int8, int8>>)
        WPK_MMA_SYNC("s8", "s8");
    else if constexpr (isSame<T, Bytes<uint8, int8>>)
        WPK_MMA_SYNC("u8", "s8");
    else if constexpr (isSame<T, Bytes<int8, uint8>>)
        WPK_MMA_SYNC("s8", "u8");
    else
        WPK_MMA_SYNC("u8", "u8");
}
#undef WPK_MMA_SYNC
#else
template <class T>
struct EmulatedMma
{
    static constexpr emulated::MmaType type = isSame<T, Half>       ? emulated::MmaType::half
                                              : isSame<T, Bfloat16> ? emulated::MmaType::bfloat16
                                                                    : emulated::MmaType::tf32;
};
template <class A, class B>
struct EmulatedMma<Bytes<A, B>>
{
    static constexpr emulated::MmaType type =
        isSame<A, int8>   ? isSame<B, int8> ? emulated::MmaType::int8Int8 : emulated::MmaType::int8Uint8
        : isSame<B, int8> ? emulated::MmaType::uint8Int8
                          : emulated::MmaType::uint8Uint8;
};
#endif

} // namespace detail

// Four 8 x 8 tiles of 16-bit values from shared memory; see the top of this file.
WPK_DEVICE void loadMatrix4(uint32 (&registers)[4], SharedAddress row)
{
    detail::loadMatrix4Any(registers, row, false);
}

// The same, each tile transposed.
WPK_DEVICE void loadMatrix4Transposed(uint32 (&registers)[4], SharedAddress row)
{
    detail::loadMatrix4Any(registers, row, true);
}

// The k extent of one mmaTile step, 32 bytes: 32 for Bytes, 16 for Half and Bfloat16, 8 for Tf32.
template <class T>
struct MmaDepth
{
    static constexpr int value = 32 / sizeof(typename MmaStored<T>::Type);
};

// acc[i][j] += a[i] * b[j] for a warp's TM x TN tiles of 16 x 8, accumulated in float, of integers in int32.
// T is Half, Bfloat16, Tf32 or Bytes. One rendezvous in the emulator however many the tiles: prefer large ones.
template <class T, class Sum, int TM, int TN>
WPK_DEVICE void mmaTile(T, Sum (&acc)[TM][TN][4], const uint32 (&a)[TM][4], const uint32 (&b)[TN][2])
{
    static_assert(isSame<Sum, typename MmaStored<T>::Sum>, "the type in which the unit adds");
#if WPK_ON_GPU
    WPK_UNROLL
    for (int i = 0; i < TM; ++i)
    {
        WPK_UNROLL
        for (int j = 0; j < TN; ++j)
            detail::mmaSync<T>(acc[i][j], a[i], b[j]);
    }
#else
    emulated::MmaTileOperands operands{acc[0][0], a[0], b[0], TM, TN, detail::EmulatedMma<T>::type};
    wpk_emulator_collective(~0u, emulated::Collective::mmaTile, &operands);
#endif
}

// The same over half a step, k 0..7: of each fragment the first half, A[0], A[1] and B[0]. Of Half and Bfloat16.
template <class T, int TM, int TN>
WPK_DEVICE void mmaHalfTile(T, float (&acc)[TM][TN][4], const uint32 (&a)[TM][2], const uint32 (&b)[TN][1])
{
    static_assert(MmaDepth<T>::value == 16, "two bytes an element");
#if WPK_ON_GPU
    WPK_UNROLL
    for (int i = 0; i < TM; ++i)
    {
        WPK_UNROLL
        for (int j = 0; j < TN; ++j)
            detail::mmaSyncHalf<T>(acc[i][j], a[i], b[j]);
    }
#else
    uint32 wholeA[TM][4] = {}, wholeB[TN][2] = {};
    for (int i = 0; i < TM; ++i)
        memcpy(wholeA[i], a[i], sizeof a[i]);
    for (int j = 0; j < TN; ++j)
        wholeB[j][0] = b[j][0];
    mmaTile(T{}, acc, wholeA, wholeB);
#endif
}

namespace detail
{

// The lower (Part 0) or upper two of four 8-bit floats, to two of Half: exactly.
template <class T, int Part>
WPK_DEVICE uint32 unpackToHalf(uint32 word)
{
    static_assert(isFloat8<T>, "8-bit floating point");
#if WPK_ON_GPU && __CUDA_ARCH__ >= 890
    uint32 halves;
    const uint16 pair = static_cast<uint16>(word >> (16 * Part));
    if constexpr (isSame<T, Float8E4m3>)
        asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(halves) : "h"(pair));
    else
        asm("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(halves) : "h"(pair));
    return halves;
#else
    const uint32 pair = word >> (16 * Part);
    const uint32 upper = (pair & 0xffu) << 8 | (pair & 0xff00u) << 16; // the upper bytes of two of Half
    if constexpr (isSame<T, Float8E5m2>)
    {
        return upper;
    }
    else
    {
        // Sign and magnitude of E4M3 are those of a Half that is 2^8 times smaller, but for NaN.
        const uint32 magnitude = upper & 0x7f007f00u;
        const uint32 isNan = (magnitude + 0x01000100u) >> 15 & 0x00010001u;
        const uint32 small = (upper & 0x80008000u) | magnitude >> 1;
#if WPK_ON_GPU
        uint32 halves;
        asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(halves) : "r"(small), "r"(0x5c005c00u));
#else
        const uint32 halves = pack2<Half>(256.0f * toFloat(Half{static_cast<uint16>(small)}),
            256.0f * toFloat(Half{static_cast<uint16>(small >> 16)}));
#endif
        return halves | isNan * 0x7fffu;
    }
#endif
}

template <class T, int Part, int Tiles, int Words>
WPK_DEVICE void unpackToHalf(uint32 (&halves)[Tiles][Words], const uint32 (&fragments)[Tiles][Words])
{
    WPK_UNROLL
    for (int i = 0; i < Tiles; ++i)
    {
        WPK_UNROLL
        for (int word = 0; word < Words; ++word)
            halves[i][word] = unpackToHalf<T, Part>(fragments[i][word]);
    }
}

template <class A, class B, int Part, int TM, int TN>
WPK_DEVICE void mmaOfHalves(float (&acc)[TM][TN][4], const uint32 (&a)[TM][4], const uint32 (&b)[TN][2])
{
    uint32 halvesA[TM][4], halvesB[TN][2];
    unpackToHalf<A, Part>(halvesA, a);
    unpackToHalf<B, Part>(halvesB, b);
    mmaTile(Half{}, acc, halvesA, halvesB);
}

} // namespace detail

// The same of 8-bit floats: two products of Half.
template <class A, class B, int TM, int TN>
WPK_DEVICE void mmaTile(Bytes<A, B>, float (&acc)[TM][TN][4], const uint32 (&a)[TM][4], const uint32 (&b)[TN][2])
{
    detail::mmaOfHalves<A, B, 0>(acc, a, b);
    detail::mmaOfHalves<A, B, 1>(acc, a, b);
}
} // namespace wpk
