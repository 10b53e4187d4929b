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
// loadMatrix4 fills four registers from four 8 x 8 tiles of 16-bit values: lane i gives the address of
// row i % 8 of tile i / 8 (16 bytes, 16-byte aligned) and receives, of each tile, (row g, columns 2t..2t+1);
// loadMatrix4Transposed gives (rows 2t..2t+1, column g) instead. So for a 16 x 16 tile of A stored
// row by row, lane i addresses row i % 16 and k (i / 16) * 8. For 16 columns of B (two B fragments,
// words 0-1 and 2-3): stored as [column][k], loadMatrix4 with lane i at column (i % 8) + (i / 16) * 8 and
// k ((i / 8) % 2) * 8; stored as [k][column], loadMatrix4Transposed with lane i at k i % 16, column (i / 16) * 8.
// For Tf32 a tile row of 16 bytes holds four values: untransposed, the same pattern gives the A and B above.
#pragma once

#include <wpk/kernels/scalar.cuh>

namespace wpk
{

// Names the type of mmaTile's operands; the values lie in memory as float.
struct Tf32
{
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
#else
template <class T>
WPK_DEVICE constexpr emulated::MmaType mmaType()
{
    return isSame<T, Half>       ? emulated::MmaType::half
           : isSame<T, Bfloat16> ? emulated::MmaType::bfloat16
                                 : emulated::MmaType::tf32;
}
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

// The type in shared memory of an operand of mmaTile(T, …).
template <class T>
struct MmaStored
{
    using Type = T;
};
template <>
struct MmaStored<Tf32>
{
    using Type = float;
};

// The k extent of one mmaTile step, 32 bytes: 16 for Half and Bfloat16, 8 for Tf32.
template <class T>
struct MmaDepth
{
    static constexpr int value = 32 / sizeof(typename MmaStored<T>::Type);
};

// acc[i][j] += a[i] * b[j] for a warp's TM x TN tiles of 16 x 8, accumulated in float.
// T is Half, Bfloat16 or Tf32. One rendezvous in the emulator however many the tiles: prefer large ones.
template <class T, int TM, int TN>
WPK_DEVICE void mmaTile(T, float (&acc)[TM][TN][4], const uint32 (&a)[TM][4], const uint32 (&b)[TN][2])
{
#if WPK_ON_GPU
    WPK_UNROLL
    for (int i = 0; i < TM; ++i)
    {
        WPK_UNROLL
        for (int j = 0; j < TN; ++j)
            detail::mmaSync<T>(acc[i][j], a[i], b[j]);
    }
#else
    emulated::MmaTileOperands operands{acc[0][0], a[0], b[0], TM, TN, detail::mmaType<T>()};
    wpk_emulator_collective(~0u, emulated::Collective::mmaTile, &operands);
#endif
}

} // namespace wpk
