// The operands of wgmma, gathered into plain matrices: through a descriptor from shared memory (PTX ISA,
// "Asynchronous Warpgroup Level Matrix Shared Memory Layout"), or from the registers of a warp.
#pragma once

#include "tile_product.h"

namespace wpk::emulator
{

struct Descriptor
{
    uint32 start, leading, stride, swizzle; // bytes
};

inline Descriptor readDescriptor(uint64 bits)
{
    constexpr uint32 kSwizzles[] = {0, 128, 64, 32};
    const auto field = [bits](int first)
    {
        return static_cast<uint32>(bits >> first & 0x3fff) << 4;
    };
    const Descriptor descriptor{field(0), field(16), field(32), kSwizzles[bits >> 62]};
    const uint32 phase = descriptor.swizzle == 0 ? 0 : descriptor.start >> 7 & (descriptor.swizzle / 16 - 1);
    if ((bits >> 49 & 7) != 0 || phase != 0)
        fail("wgmma: a tile at byte %u is not aligned to the %u bytes of its swizzle", descriptor.start,
            descriptor.swizzle * 8);
    return descriptor;
}

// 16 bytes at `place` before swizzling.
inline const char* descriptorPiece(const Descriptor& descriptor, uint32 place)
{
    const RunningBlock& block = currentBlock();
    if (descriptor.swizzle != 0)
        place ^= (place >> 7 & (descriptor.swizzle / 16 - 1)) << 4;
    if (place + 16 > block.sharedBytes)
        fail("wgmma: a descriptor reaches behind the shared memory");
    checkFenced(block, place, 16, "wgmma");
    return block.shared + place;
}

// Of row (or column) `outer`, bytes 16 * half onwards along K.
inline const char* pieceAlong(const Descriptor& descriptor, int outer, int half)
{
    const uint32 group = static_cast<uint32>(outer) / 8 * descriptor.stride, in = static_cast<uint32>(outer) % 8;
    const uint32 piece = static_cast<uint32>(half);
    if (descriptor.swizzle == 0)
        return descriptorPiece(descriptor, descriptor.start + group + in * 16 + piece * descriptor.leading);
    return descriptorPiece(descriptor, descriptor.start + group + in * descriptor.swizzle + piece * 16);
}

// At k, rows (or columns) 8 * eight onwards.
inline const char* pieceAcross(const Descriptor& descriptor, int eight, int k)
{
    const uint32 piece = static_cast<uint32>(eight), group = static_cast<uint32>(k) / 8,
                 in = static_cast<uint32>(k) % 8;
    if (descriptor.swizzle == 0)
    {
        return descriptorPiece(
            descriptor, descriptor.start + piece * descriptor.stride + group * descriptor.leading + in * 16);
    }
    const uint32 pieces = descriptor.swizzle / 16;
    return descriptorPiece(descriptor, descriptor.start + piece / pieces * descriptor.leading + piece % pieces * 16
                                           + group * descriptor.stride + in * descriptor.swizzle);
}

// The values of 16 bytes, as the unit reads them.
template <emulated::MmaType T>
inline void widenPiece(const char* piece, float* target)
{
    if constexpr (T == emulated::MmaType::tf32)
    {
        uint32 words[4];
        memcpy(words, piece, 16);
        for (int i = 0; i < 4; ++i)
            target[i] = cutToTf32(words[i]);
    }
    else
    {
        uint16 values[8];
        memcpy(values, piece, 16);
        widen8<T>(values, target);
    }
}

// a[row][k] of 16 rows from `first` on.
template <emulated::MmaType T>
inline void readRows(uint64 bits, bool across, int first, float (*a)[16])
{
    constexpr int kValues = T == emulated::MmaType::tf32 ? 4 : 8;
    const Descriptor descriptor = readDescriptor(bits);
    if (!across)
    {
        for (int row = 0; row < 16; ++row)
        {
            for (int half = 0; half < 2; ++half)
                widenPiece<T>(pieceAlong(descriptor, first + row, half), &a[row][half * kValues]);
        }
        return;
    }
    for (int k = 0; k < 16; ++k)
    {
        alignas(64) float rows[16];
        for (int half = 0; half < 2; ++half)
            widenPiece<T>(pieceAcross(descriptor, first / 8 + half, k), rows + half * 8);
        for (int row = 0; row < 16; ++row)
            a[row][k] = rows[row];
    }
}

// b[k][column] of 16 columns from `first` on, as far as there are.
template <emulated::MmaType T>
inline void readColumns(uint64 bits, bool across, int first, int columns, float (*b)[16])
{
    constexpr int kValues = T == emulated::MmaType::tf32 ? 4 : 8;
    const Descriptor descriptor = readDescriptor(bits);
    for (int column = first; column < first + 16 && column < columns; column += 8)
    {
        if (across)
        {
            for (int k = 0; k < 16; ++k)
                widenPiece<T>(pieceAcross(descriptor, column / 8, k), &b[k][column - first]);
            continue;
        }
        for (int half = 0; half < 2; ++half)
        {
            alignas(64) float transposed[8][8] = {};
            for (int i = 0; i < 8; ++i)
                widenPiece<T>(pieceAlong(descriptor, column + i, half), transposed[i]);
            if constexpr (kValues == 8)
            {
                transpose8(transposed[0], &b[half * 8][column - first], 16);
                continue;
            }
            for (int k = 0; k < kValues; ++k)
            {
                for (int i = 0; i < 8; ++i)
                    b[half * kValues + k][column - first + i] = transposed[i][k];
            }
        }
    }
}

// A warp's 16 rows of A from its registers: the layout A of mma.cuh.
template <emulated::MmaType T>
inline void readFragment(const uint32 (&lanes)[32][4], float (*a)[16])
{
    const uint32* pointers[32];
    for (int lane = 0; lane < 32; ++lane)
        pointers[lane] = lanes[lane];
    gatherA<T>(pointers, 0, a);
}

} // namespace wpk::emulator
