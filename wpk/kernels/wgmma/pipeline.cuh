// The pipeline between a producer thread and consumer warps (sm_90a): stages of shared memory that TMA fills, and two
// mbarriers each, full and empty. CUTLASS calls it PipelineTmaAsync.
//
// With multicast a stage is filled by several blocks of the cluster, so it is empty when the consumers of all of them
// have released it. Other blocks of the cluster, which split-K leaves other steps, do not touch it.
#pragma once

#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/sums/cluster_parts.cuh>
#include <wpk/kernels/wgmma/shape.cuh>

namespace wpk
{

// The stage of a step, and the phase of its barriers in this round of the pipeline. A consumer begins with phase 0.
template <int Stages>
struct PipelineState
{
    int stage = 0, phase = 0;

    WPK_DEVICE void advance()
    {
        if (++stage == Stages)
        {
            stage = 0;
            phase ^= 1;
        }
    }

    // So many steps further on.
    WPK_DEVICE void skip(int steps)
    {
        phase ^= (stage + steps) / Stages % 2; // @phase_skipped
        stage = (stage + steps) % Stages;
    }

    // The stage of the step before.
    WPK_DEVICE int lastStage() const
    {
        return (stage == 0 ? Stages : stage) - 1;
    }
};

// The barriers of a pipeline in shared memory. Full counts the bytes that arrive; empty counts the Warps that consume
// a stage, of all blocks of the Group that its tiles are multicast to.
template <int Stages, int Warps, class Group = MulticastGroup<1>>
struct PipelineBarriers
{
    SharedAddress barriers;
    int firstBlock = Group::first();
    static constexpr int kBytes = Stages * 16;

    WPK_DEVICE SharedAddress full(int stage) const
    {
        return barriers + stage * 16;
    }
    WPK_DEVICE SharedAddress empty(int stage) const
    {
        return full(stage) + 8;
    }

    // Behind it stands fenceBarrierInit.
    WPK_DEVICE void init() const
    {
        WPK_UNROLL
        for (int stage = 0; stage < Stages; ++stage)
        {
            initBarrier(full(stage), 1);
            initBarrier(empty(stage), Warps * Group::blocks); // @consumers_counted
        }
    }

    // The producer waits until the stage is empty, and says what comes. Fresh barriers let phase 1 pass.
    WPK_DEVICE void acquire(int stage, int phase, int bytes) const
    {
        waitBarrier(empty(stage), phase);      // @stage_acquired
        arriveExpectBytes(full(stage), bytes); // @bytes_expected
    }

    // A whole warp waits until the stage is full.
    WPK_DEVICE void wait(const PipelineState<Stages>& state) const
    {
        waitBarrier(full(state.stage), state.phase); // @tiles_awaited
        __syncwarp();                                // products are asked for by whole warps
    }

    // A warp no longer needs a stage, and says so to all blocks that fill it.
    WPK_DEVICE void release(int stage) const
    {
        if constexpr (Group::blocks == 1)
        {
            if (laneIndex() == 0)
                arriveBarrier(empty(stage));
        }
        else if (laneIndex() < Group::blocks) // @blocks_told
        {
            arriveReadBarrier(clusterAddress(empty(stage), firstBlock + laneIndex())); // @block_told
        }
    }
};

// Where stages lie, and behind them their barriers. The epilogue stages its sums over the tiles, which are no longer
// needed then, but never over barriers: an initialised barrier's memory is for nothing else (PTX ISA,
// "mbarrier.inval"), and words of sums that lay there were seen to change.
template <class Shape>
struct WgmmaPipeline : PipelineBarriers<Shape::stages, Shape::stageWarps, typename Shape::Multicast>
{
    using Barriers = PipelineBarriers<Shape::stages, Shape::stageWarps, typename Shape::Multicast>;
    SharedAddress shared;

    WPK_DEVICE explicit WgmmaPipeline(SharedAddress shared) : Barriers{shared + barriersAt()}, shared(shared) {}

    WPK_DEVICE void init() const
    {
        Barriers::init();
        if constexpr (Shape::pingpong)
        {
            initBarrier(turnOf(0), Shape::kGroupWarps);
            initBarrier(turnOf(1), Shape::kGroupWarps);
        }
        fenceBarrierInit();
    }

    // With ping-pong: a group waits until the products of the tile before its own are under way, which are the other
    // group's. `parity` of its first tile is 1 where it has the first of all, else 0, and alternates. Without this
    // order it would be more than a round of the pipeline ahead of what it waits for. GroupTurns, which counts turns of
    // any number of groups, would do the same in more instructions and registers.
    WPK_DEVICE void awaitTurn(int group, int parity) const
    {
        waitBarrier(turnOf(group), parity); // @turn_awaited
        __syncwarp();
    }
    // A warp says so to the other group.
    WPK_DEVICE void passTurn(int group) const
    {
        if (laneIndex() == 0)
            arriveBarrier(turnOf(group ^ 1)); // @turn_passed
    }
    WPK_DEVICE SharedAddress tileA(int stage) const
    {
        return shared + stage * Shape::stageBytes;
    }
    WPK_DEVICE SharedAddress tileB(int stage) const
    {
        return tileA(stage) + Shape::bytesA;
    }
    // Of fp32 two boxes behind the stages: what tf32 cuts off B's numbers, box after box in turns.
    static WPK_DEVICE constexpr int smallB(int box)
    {
        return Shape::stages * Shape::stageBytes + box % 2 * Shape::boxBytesB; // @small_box
    }
    static WPK_DEVICE constexpr int bytes()
    {
        return turnsAt() + (Shape::pingpong ? 16 : 0);
    }
    // Shared memory of the block: a persistent kernel's epilogue is staged beside the pipeline, which goes on
    // meanwhile; and what other blocks of a cluster send comes in there.
    static WPK_DEVICE constexpr int blockBytes()
    {
        return bytes() + (Shape::persistent ? Shape::warpsM * Shape::stagedBytes : 0) + ClusterParts<Shape>::kBytes;
    }

private:
    static WPK_DEVICE constexpr int turnsAt()
    {
        return barriersAt() + Barriers::kBytes;
    }
    WPK_DEVICE SharedAddress turnOf(int group) const
    {
        return shared + turnsAt() + group * 8;
    }
    static WPK_DEVICE constexpr int barriersAt()
    {
        const int end = smallB(0) + (Shape::splitFp32 ? 2 * Shape::boxBytesB : 0);
        return Shape::persistent ? end : maxOf(end, Shape::warpsM * Shape::stagedBytes); // @barriers_placed
    }
};

} // namespace wpk
