// mmaTile of bytes, whose products are added in int32: exact, and modulo 2^32 as in the hardware without .satfinite.
#pragma once

#include <cstdint>
#include <cstring>

#include "state.h"

namespace wpk::emulator
{

// The four values in a register.
template <class Byte>
inline void widenBytes(uint32 word, std::int16_t* target)
{
    Byte bytes[4];
    memcpy(bytes, &word, 4);
    for (int i = 0; i < 4; ++i)
        target[i] = bytes[i];
}

// Layouts A, B and D of mma.cuh.
template <class A, class B>
inline void multiplyBytes(Warp& warp)
{
    constexpr int kDepth = 32;
    Worker& self = *worker;
    const auto& shape = *static_cast<emulated::MmaTileOperands*>(warp.fibers[0].operands);
    const emulated::MmaTileOperands* lanes[32];
    for (int lane = 0; lane < 32; ++lane)
    {
        const auto& own = *(lanes[lane] = static_cast<emulated::MmaTileOperands*>(warp.fibers[lane].operands));
        const int group = lane / 4, place = lane % 4 * 4;
        for (uint32 word = 0; word < shape.tilesM * 4; ++word)
            widenBytes<A>(own.a[word], &self.bytesA[word / 4][group + word % 2 * 8][place + word % 4 / 2 * 16]);
        for (uint32 word = 0; word < shape.tilesN * 2; ++word)
            widenBytes<B>(own.b[word], &self.bytesB[word / 2][group][place + word % 2 * 16]);
    }
    for (uint32 tile = 0; tile < shape.tilesM * shape.tilesN; ++tile)
    {
        const auto& a = self.bytesA[tile / shape.tilesN];
        const auto& b = self.bytesB[tile % shape.tilesN];
        for (int element = 0; element < 16 * 8; ++element)
        {
            const int row = element / 8, column = element % 8;
            std::int32_t sum = 0;
            for (int k = 0; k < kDepth; ++k)
                sum += a[row][k] * b[column][k];
            auto* const sums = static_cast<uint32*>(lanes[row % 8 * 4 + column / 2]->accumulators) + tile * 4;
            sums[row / 8 * 2 + column % 2] += static_cast<uint32>(sum);
        }
    }
}

} // namespace wpk::emulator
