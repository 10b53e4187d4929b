// Asynchronous products of a warpgroup (sm_90a): each warp computes its 16 rows of the 64.
//
// In checking mode they take effect at the wait. Until then the registers of their accumulators hold NaN and the
// values lie here, so that a use before the wait is seen.
#include <cstdint>

#include "wgmma_operands.h"

namespace wpk::emulator
{

using namespace emulated;

namespace
{

constexpr uint32 kUnderWay = ~0u; // bits of an accumulator's registers until its products are waited for

// The 16 rows of a warpgroup's 64 x N tile that belong to this warp; accumulators[lane] has columns / 2 values.
template <MmaType T>
void multiplyWarp(
    uint32 warp, const WgmmaOperands& operands, const uint32 (&fragment)[32][4], float* const* accumulators)
{
    constexpr int kDepth = T == MmaType::tf32 ? 8 : 16;
    Worker& self = *worker;
    if (operands.registers != nullptr)
        readFragment<T>(fragment, self.a[0]);
    else
        readRows<T>(operands.a, operands.acrossA, static_cast<int>(warp & 3) * 16, self.a[0]);
    const int columns = static_cast<int>(operands.columns);
    for (int column = 0; column < columns; column += 16)
    {
        float* piece[32];
        for (int lane = 0; lane < 32; ++lane)
            piece[lane] = accumulators[lane] + column / 2;
        readColumns<T>(operands.b, operands.acrossB, column, columns, self.b[0]);
        multiplyPair<kDepth>(self.a[0], self.b[0], piece, column + 8 < columns, operands.accumulate == 0);
    }
}

// The same of bytes, both in shared memory; accumulators hold int32.
template <class A, class B>
void multiplyBytes(uint32 warp, const WgmmaOperands& operands, float* const* accumulators)
{
    const Descriptor ofA = readDescriptor(operands.a), ofB = readDescriptor(operands.b);
    A a[16][32];
    for (int row = 0; row < 16; ++row)
    {
        for (int half = 0; half < 2; ++half)
            memcpy(&a[row][half * 16], pieceAlong(ofA, static_cast<int>(warp & 3) * 16 + row, half), 16);
    }
    for (int column = 0; column < static_cast<int>(operands.columns); ++column)
    {
        B b[32];
        for (int half = 0; half < 2; ++half)
            memcpy(b + half * 16, pieceAlong(ofB, column, half), 16);
        for (int row = 0; row < 16; ++row)
        {
            uint32 sum = 0; // wraps around, as the unit's does
            for (int k = 0; k < 32; ++k)
                sum += static_cast<uint32>(static_cast<int32>(a[row][k]) * b[k]);
            // Layout D of mma.cuh, tile by tile of eight columns.
            const int lane = row % 8 * 4 + column % 8 / 2, place = column / 8 * 4 + row / 8 * 2 + column % 2;
            char* const at = reinterpret_cast<char*>(accumulators[lane] + place);
            uint32 before = 0;
            if (operands.accumulate != 0)
                memcpy(&before, at, 4);
            sum += before;
            memcpy(at, &sum, 4);
        }
    }
}

void multiply(uint32 warp, const WgmmaOperands& operands, const uint32 (&fragment)[32][4], float* const* accumulators)
{
    switch (operands.type)
    {
    case MmaType::half:
        return multiplyWarp<MmaType::half>(warp, operands, fragment, accumulators);
    case MmaType::bfloat16:
        return multiplyWarp<MmaType::bfloat16>(warp, operands, fragment, accumulators);
    case MmaType::tf32:
        return multiplyWarp<MmaType::tf32>(warp, operands, fragment, accumulators);
    case MmaType::int8Int8:
        return multiplyBytes<std::int8_t, std::int8_t>(warp, operands, accumulators);
    case MmaType::int8Uint8:
        return multiplyBytes<std::int8_t, std::uint8_t>(warp, operands, accumulators);
    case MmaType::uint8Int8:
        return multiplyBytes<std::uint8_t, std::int8_t>(warp, operands, accumulators);
    case MmaType::uint8Uint8:
        return multiplyBytes<std::uint8_t, std::uint8_t>(warp, operands, accumulators);
    }
}

bool areUnderWay(const WgmmaTarget& target)
{
    const size_t each = target.values.size() / 32;
    for (const float* registers : target.registers)
    {
        for (size_t i = 0; i < each; ++i)
        {
            uint32 bits;
            memcpy(&bits, registers + i, 4);
            if (bits != kUnderWay)
                return false;
        }
    }
    return true;
}

// The accumulators of a product that is being started: taken out of the registers if no product has them yet.
size_t takeTarget(Warp& warp, const WgmmaOperands& operands, float* const* registers)
{
    std::vector<WgmmaTarget>& targets = warp.wgmmaTargets;
    const size_t each = operands.columns / 2;
    for (size_t i = 0; i < targets.size(); ++i)
    {
        if (targets[i].registers[0] != registers[0] || targets[i].pending == 0)
            continue;
        if (targets[i].values.size() != each * 32)
            fail("wgmma: accumulators of %zu columns are under way", targets[i].values.size() / 16);
        if (!areUnderWay(targets[i]))
            fail("wgmma: accumulators are written before the products under way are waited for");
        targets[i].pending++;
        return i;
    }
    WgmmaTarget target{{}, std::vector<float>(each * 32), 1};
    for (int lane = 0; lane < 32; ++lane)
    {
        target.registers[lane] = registers[lane];
        memcpy(&target.values[static_cast<size_t>(lane) * each], registers[lane], each * 4);
        memset(registers[lane], 0xff, each * 4);
    }
    targets.push_back(target);
    return targets.size() - 1;
}

void finish(Warp& warp, const WgmmaPending& pending)
{
    WgmmaTarget& target = warp.wgmmaTargets[pending.target];
    const size_t each = target.values.size() / 32;
    float* accumulators[32];
    for (size_t lane = 0; lane < 32; ++lane)
        accumulators[lane] = &target.values[lane * each];
    multiply(warp.index, pending.operands, pending.a, accumulators);
    if (--target.pending != 0)
        return;
    if (!areUnderWay(target))
        fail("wgmma: accumulators are written before the products under way are waited for");
    for (size_t lane = 0; lane < 32; ++lane)
        memcpy(target.registers[lane], accumulators[lane], each * 4);
}

} // namespace

void runWgmma(Warp& warp, uint32 mask)
{
    if (mask != ~0u)
        fail("wgmma: only lanes %08x take part", mask);
    WgmmaPending pending{0, *static_cast<WgmmaOperands*>(warp.fibers[0].operands), {}};
    const WgmmaOperands& first = pending.operands;
    float* accumulators[32];
    for (int lane = 0; lane < 32; ++lane)
    {
        const auto& other = *static_cast<WgmmaOperands*>(warp.fibers[lane].operands);
        accumulators[lane] = other.accumulators;
        if (other.a != first.a || other.b != first.b || other.accumulate != first.accumulate)
            fail("wgmma: the lanes of one warp bring different descriptors");
        if (other.registers != nullptr)
            memcpy(pending.a[lane], other.registers, sizeof pending.a[lane]);
    }
    if (!worker->has(kLateCopies))
        return multiply(warp.index, first, pending.a, accumulators);
    if (!warp.wgmmaFenced)
        fail("wgmma: fenceWgmma is missing in front of it");
    pending.target = takeTarget(warp, first, accumulators);
    warp.wgmmas.pending.push_back(pending);
}

void runWgmmaFence(Warp& warp, uint32)
{
    warp.wgmmaFenced = true;
}

void runWgmmaCommit(Warp& warp, uint32)
{
    warp.wgmmas.commit();
}

void runWgmmaWait(Warp& warp, uint32)
{
    warp.wgmmaFenced = false;
    warp.wgmmas.wait(*static_cast<const uint32*>(warp.fibers[0].operands),
        [&warp](const WgmmaPending& pending) { finish(warp, pending); });
    if (warp.wgmmas.pending.empty())
        warp.wgmmaTargets.clear();
}

} // namespace wpk::emulator
