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
// Tf32, m16n8k8, one value a register (a float; roundToTf32 rounds, the unit itself cuts the low 13 bits):
//   A, 4 words:   [0] (row g, k t)   [1] (g + 8, t)   [2] (g, t + 4)   [3] (g + 8, t + 4)
//   B, 2 words:   [0] (k t, column g)   [1] (k t + 4, column g)
//
// Bytes, m16n8k32, four values a register, D in int32: as Half, with k 4t..4t+3 and 4t + 16..4t + 19 in the places of
// k 2t..2t+1 and 2t + 8..2t + 9.
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

#include <wpk/kernels/scalar.cuh>

namespace wpk
{

// Names the type of mmaTile's operands; the values lie in memory as float.
struct Tf32
{
};

// Names products of bytes, A and B each int8 or uint8, whose sums are exact as long as int32 holds them.
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
    using Type = A;
    using TypeB = B;
    using Sum = int32;
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

// acc[i][j] += a[i] * b[j] for a warp's TM x TN tiles of 16 x 8, accumulated in float, of Bytes in int32.
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

} // namespace wpk
