// mmaTile: the fragments of all lanes are gathered into plain matrices, multiplied, and scattered back.
#include "byte_product.h"
#include "tile_product.h"

namespace wpk::emulator
{

using namespace emulated;

namespace
{

constexpr uint32 kMaximumTilesM = 16, kMaximumTilesN = 64;

// Fills columns `column`..`column` + 7 of b, which is [k][16].
template <MmaType T>
void gatherB(const uint32* const* lanes, uint32 tile, float (*b)[16], int column)
{
    alignas(64) uint32 words[2][32];
    for (int lane = 0; lane < 32; ++lane)
    {
        for (int j = 0; j < 2; ++j)
            words[j][lane] = lanes[lane][tile * 2 + j];
    }
    for (int j = 0; j < 2; ++j)
    {
        if constexpr (T == MmaType::tf32)
        {
            for (int lane = 0; lane < 32; ++lane)
                b[lane % 4 + j * 4][column + lane / 4] = cutToTf32(words[j][lane]);
        }
        else
        {
            alignas(64) float transposed[8][8];
            const uint16* const halves = reinterpret_cast<const uint16*>(words[j]);
            for (int i = 0; i < 8; ++i)
                widen8<T>(halves + 8 * i, transposed[i]);
            transpose8(transposed[0], &b[j * 8][column], 16);
        }
    }
}

template <MmaType T>
void multiply(Warp& warp)
{
    constexpr int kDepth = T == MmaType::tf32 ? 8 : 16;
    const auto& shape = *static_cast<MmaTileOperands*>(warp.fibers[0].operands);
    const uint32 *a[32], *b[32];
    float* accumulators[32];
    for (int lane = 0; lane < 32; ++lane)
    {
        auto& operands = *static_cast<MmaTileOperands*>(warp.fibers[lane].operands);
        a[lane] = operands.a;
        b[lane] = operands.b;
        accumulators[lane] = static_cast<float*>(operands.accumulators);
    }
    Worker& self = *worker;
    for (uint32 i = 0; i < shape.tilesM; ++i)
        gatherA<T>(a, i, self.a[i]);
    if (shape.tilesN % 2 != 0)
        memset(self.b[shape.tilesN / 2], 0, sizeof self.b[0]);
    for (uint32 j = 0; j < shape.tilesN; ++j)
        gatherB<T>(b, j, self.b[j / 2], static_cast<int>(j % 2) * 8);
    for (uint32 i = 0; i < shape.tilesM; ++i)
    {
        for (uint32 j = 0; j < shape.tilesN; j += 2)
        {
            float* piece[32];
            for (int lane = 0; lane < 32; ++lane)
                piece[lane] = accumulators[lane] + (i * shape.tilesN + j) * 4;
            multiplyPair<kDepth>(self.a[i], self.b[j / 2], piece, j + 1 < shape.tilesN, false);
        }
    }
}

} // namespace

void runMmaTile(Warp& warp, uint32 mask)
{
    if (mask != ~0u)
        fail("mmaTile: only lanes %08x take part", mask);
    const auto& first = *static_cast<MmaTileOperands*>(warp.fibers[0].operands);
    for (int lane = 1; lane < 32; ++lane)
    {
        const auto& other = *static_cast<MmaTileOperands*>(warp.fibers[lane].operands);
        if (other.type != first.type || other.tilesM != first.tilesM || other.tilesN != first.tilesN)
        {
            fail("mmaTile: the lanes of one warp bring different tiles");
        }
    }
    if (first.tilesM > kMaximumTilesM || first.tilesN > kMaximumTilesN)
    {
        fail("mmaTile: %u x %u tiles, the emulator holds %u x %u", first.tilesM, first.tilesN, kMaximumTilesM,
            kMaximumTilesN);
    }
    switch (first.type)
    {
    case MmaType::half:
        return multiply<MmaType::half>(warp);
    case MmaType::bfloat16:
        return multiply<MmaType::bfloat16>(warp);
    case MmaType::tf32:
        return multiply<MmaType::tf32>(warp);
    case MmaType::int8Int8:
        return multiplyBytes<std::int8_t, std::int8_t>(warp);
    case MmaType::int8Uint8:
        return multiplyBytes<std::int8_t, std::uint8_t>(warp);
    case MmaType::uint8Int8:
        return multiplyBytes<std::uint8_t, std::int8_t>(warp);
    case MmaType::uint8Uint8:
        return multiplyBytes<std::uint8_t, std::uint8_t>(warp);
    }
}

} // namespace wpk::emulator
