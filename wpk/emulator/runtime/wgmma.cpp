// Asynchronous products of a warpgroup (sm_90a): each warp computes its 16 rows of the 64.
#include "tile_product.h"

namespace wpk::emulator
{

using namespace emulated;

namespace
{

constexpr uint64 kSwizzle128 = 1; // layout field of a descriptor

// 16 bytes of a K-major tile with 128-byte swizzle: row `row`, bytes 16 * half onwards from the start.
const uint16* descriptorRow(uint64 descriptor, int row, int half)
{
    const uint32 start = static_cast<uint32>(descriptor & 0x3fff) << 4;
    const uint32 groupStride = static_cast<uint32>(descriptor >> 32 & 0x3fff) << 4;
    uint32 place = start + static_cast<uint32>(row >> 3) * groupStride + static_cast<uint32>(row & 7) * 128
                   + static_cast<uint32>(half) * 16;
    place ^= (place >> 7 & 7) << 4;
    if (place + 16 > worker->block.sharedBytes)
        fail("wgmma: a descriptor reaches behind the shared memory");
    return reinterpret_cast<const uint16*>(worker->block.shared + place);
}

// The 16 rows of a warpgroup's 64 x N tile that belong to this warp.
template <MmaType T>
void multiplyWarp(uint32 warp, const WgmmaPending& pending)
{
    Worker& self = *worker;
    const WgmmaOperands& operands = pending.operands;
    const int columns = static_cast<int>(operands.columns);
    for (int row = 0; row < 16; ++row)
    {
        for (int half = 0; half < 2; ++half)
        {
            widen8<T>(
                descriptorRow(operands.a, static_cast<int>(warp & 3) * 16 + row, half), &self.a[0][row][half * 8]);
        }
    }
    for (int column = 0; column < columns; column += 8)
    {
        for (int half = 0; half < 2; ++half)
        {
            alignas(64) float transposed[8][8];
            for (int i = 0; i < 8; ++i)
                widen8<T>(descriptorRow(operands.b, column + i, half), transposed[i]);
            transpose8(transposed[0], &self.b[column / 16][half * 8][column & 8], 16);
        }
    }
    for (int column = 0; column < columns; column += 16)
    {
        float* piece[32];
        for (int lane = 0; lane < 32; ++lane)
            piece[lane] = pending.accumulators[lane] + column / 2;
        multiplyPair<16>(self.a[0], self.b[column / 16], piece, column + 8 < columns, operands.accumulate == 0);
    }
}

void multiply(uint32 warp, const WgmmaPending& pending)
{
    if (pending.operands.type == MmaType::half)
        return multiplyWarp<MmaType::half>(warp, pending);
    return multiplyWarp<MmaType::bfloat16>(warp, pending);
}

} // namespace

void runWgmma(Warp& warp, uint32 mask)
{
    if (mask != ~0u)
        fail("wgmma: only lanes %08x take part", mask);
    WgmmaPending pending{{}, *static_cast<WgmmaOperands*>(warp.fibers[0].operands)};
    const WgmmaOperands& first = pending.operands;
    if (first.a >> 62 != kSwizzle128 || first.b >> 62 != kSwizzle128)
    {
        fail("wgmma: only descriptors with 128-byte swizzle are emulated");
    }
    for (int lane = 0; lane < 32; ++lane)
    {
        const auto& other = *static_cast<WgmmaOperands*>(warp.fibers[lane].operands);
        pending.accumulators[lane] = other.accumulators;
        if (other.a != first.a || other.b != first.b || other.accumulate != first.accumulate)
        {
            fail("wgmma: the lanes of one warp bring different descriptors");
        }
    }
    if (worker->has(kLateCopies))
    {
        warp.wgmmas.push_back(pending);
    }
    else
    {
        multiply(warp.index, pending);
    }
}

void runWgmmaCommit(Warp& warp, uint32)
{
    warp.wgmmaGroups.push_back(warp.wgmmas.size());
}

void runWgmmaWait(Warp& warp, uint32)
{
    const size_t keep = *static_cast<const uint32*>(warp.fibers[0].operands);
    if (warp.wgmmaGroups.size() <= keep)
        return;
    const size_t done = warp.wgmmaGroups.size() - keep, end = warp.wgmmaGroups[done - 1];
    for (size_t i = 0; i < end; ++i)
        multiply(warp.index, warp.wgmmas[i]);
    warp.wgmmas.erase(warp.wgmmas.begin(), warp.wgmmas.begin() + static_cast<long>(end));
    warp.wgmmaGroups.erase(warp.wgmmaGroups.begin(), warp.wgmmaGroups.begin() + static_cast<long>(done));
    for (size_t& group : warp.wgmmaGroups)
        group -= end;
}

} // namespace wpk::emulator
