// The rows of A that a product of warpgroups normalises behind it (sm_90a). Four warps of their own take the rows'
// moments from the stages in shared memory, beside the consumers, which multiply the same stages; with a tile's last
// step they hand over what the consumers normalise their sums by (norm_slots.cuh).
#pragma once

#include <wpk/kernels/mma.cuh>
#include <wpk/kernels/row_norm.cuh>
#include <wpk/kernels/tile_shared.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

namespace detail
{

// The slot of a stage, of a pipeline in `shared`.
template <class Shape>
WPK_DEVICE unsigned char* normSlot(unsigned char* shared, int stage)
{
    return shared + WgmmaPipeline<Shape>::normSlotsAt() + stage * NormSlots<Shape>::kSlotBytes;
}

// What rows are normalised by, of a slot.
template <class Shape>
WPK_DEVICE float* slotScales(unsigned char* slot)
{
    return reinterpret_cast<float*>(slot + NormSlots<Shape>::kBarrierBytes);
}
template <class Shape>
WPK_DEVICE float* slotSums(unsigned char* slot)
{
    return reinterpret_cast<float*>(slot + NormSlots<Shape>::kSumsAt);
}

// The sums of a thread's columns of a tile, of which Threads have one in turns.
template <class Problem, int Columns, int Threads>
class TileSums
{
    static constexpr int kItems = ceilDivide(Columns, Threads);

public:
    template <class Window>
    WPK_DEVICE TileSums(const Window& window, int thread)
    {
        if constexpr (Problem::row_is_centred)
        {
            WPK_UNROLL
            for (int item = 0; item < kItems; ++item)
            {
                const int column = thread + item * Threads;
                const bool isThere = column < Columns && window.firstColumn + column < window.columnEnd;
                values_[item] = isThere ? columnSums<Problem>(window)[window.firstColumn + column] : 0.0f;
            }
        }
    }

    WPK_DEVICE void store(float* to, int thread) const
    {
        if constexpr (Problem::row_is_centred)
        {
            WPK_UNROLL
            for (int item = 0; item < kItems; ++item)
            {
                const int column = thread + item * Threads;
                if (column < Columns)
                    to[column] = values_[item];
            }
        }
    }

private:
    float values_[kItems];
};

} // namespace detail

// The moments of the rows of a tile at `window`, all of whose steps it takes from `state` on. Shape::momentWarps warps
// call it; each has 16 of each 64 rows.
template <class Problem, class Shape, class Window>
WPK_DEVICE void takeMoments(unsigned char* shared, const WgmmaPipeline<Shape>& pipeline,
    PipelineState<Shape::stages>& state, const Window& window)
{
    constexpr int kSteps = ceilDivide(Problem::k, Shape::blockK), kSets = Shape::blockM / Shape::kProductRows;
    constexpr int kSetBytes = Shape::kProductRows * Shape::kBoxRowBytes, kThreads = Shape::momentWarps * kWarpSize;
    constexpr bool isWhole = Problem::k % Shape::blockK == 0;
    const int warp = warpIndex() - (Shape::warpsM + 1), thread = warp * kWarpSize + laneIndex();
    const int row = warp * 16 + laneIndex() % 16, chunk = laneIndex() / 16; // @rows_looked
    const detail::TileSums<Problem, Shape::blockN, kThreads> sums(window, thread);
    RowMoments<typename Problem::Multiply, Problem::row_is_centred, Problem::k> moments[kSets];
    WPK_KEEP_LOOP
    for (int step = 0; step < kSteps; ++step)
    {
        pipeline.wait(state);
        WPK_UNROLL
        for (int set = 0; set < kSets; ++set)
        {
            WPK_UNROLL
            for (int box = 0; box < Shape::boxes; ++box)
            {
                // @rows_of_norm
                const SharedAddress rows = pipeline.tileA(state.stage) + box * Shape::boxBytesA + set * kSetBytes;
                uint32 fragments[Shape::slices][4]; // under way at once
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                    loadMatrix4(fragments[slice], rows + SwizzledTile<128>::offset(row, slice * 2 + chunk));
                if (box == 0 && step == 0)
                    moments[set].begin(fragments[0]);
                WPK_UNROLL
                for (int slice = 0; slice < Shape::slices; ++slice)
                {
                    const int first = step * Shape::blockK + box * Shape::kBoxDepth + slice * 16;
                    moments[set].template add<isWhole>(fragments[slice], first);
                }
            }
        }
        if (step + 1 == kSteps) // @moments_taken
        {
            unsigned char* const slot = detail::normSlot<Shape>(shared, state.stage);
            sums.store(detail::slotSums<Shape>(slot), thread);
            WPK_UNROLL
            for (int set = 0; set < kSets; ++set)
            {
                const int first = set * Shape::kProductRows + warp * 16 + laneIndex() / 4; // @scales_placed
                WPK_UNROLL
                for (int half = 0; half < 2; ++half)
                {
                    const RowScale scale =
                        moments[set].scale(half, moments[set].sums(half), asFloat(Problem::row_epsilon));
                    if (laneIndex() % 4 == 0)
                        store<float, 2>(
                            detail::slotScales<Shape>(slot) + 2 * (first + half * 8), {scale.mean, scale.scale});
                }
            }
        }
        __syncwarp();                               // whoever tells that the warp is done does so for all lanes
        pipeline.normSlots().handOver(state.stage); // @moments_told
        pipeline.release(state.stage);              // @moments_release
        state.advance();
    }
}

// A consumer's sums of a tile whose rows are normalised.
template <class Problem, class Shape>
class NormedSums
{
    static constexpr int kProducts = Shape::kGroupRows / Shape::kProductRows, kTiles = Shape::blockN / 8;

public:
    WPK_DEVICE explicit NormedSums(unsigned char* shared) : shared_(shared) {}

    // While the last products run, behind all steps: waits for what the rows are normalised by.
    WPK_DEVICE void await(const WgmmaPipeline<Shape>& pipeline, const PipelineState<Shape::stages>& state)
    {
        stage_ = state.lastStage();
        pipeline.normSlots().await(stage_, state.lastPhase());
    }

    // Before the stage of the last step is released.
    WPK_DEVICE void normalise(float (&acc)[Shape::accumulators]) const
    {
        auto& products = reinterpret_cast<float(&)[kProducts][kTiles][4]>(acc);
        unsigned char* const slot = detail::normSlot<Shape>(shared_, stage_);
        const int ofGroup = Shape::pingpong ? 0 : warpIndex() / Shape::kGroupWarps * Shape::kProductRows;
        const int row = ofGroup + warpIndex() % Shape::kGroupWarps * 16 + laneIndex() / 4; // @scales_of_warp
        const float* const sums = detail::slotSums<Shape>(slot) + laneIndex() % 4 * 2;
        WPK_UNROLL
        for (int product = 0; product < kProducts; ++product)
        {
            const float* const from = detail::slotScales<Shape>(slot) + 2 * (row + product * Shape::kProductRows);
            const auto upper = load<float, 2>(from), lower = load<float, 2>(from + 2 * 8);
            const RowScale scales[2] = {{upper[0], upper[1]}, {lower[0], lower[1]}};
            normaliseProducts<Problem>(
                products[product], scales, [=](int tile) { return load<float, 2>(sums + tile * 8); });
        }
        __syncwarp(); // whoever releases the stage does so for all lanes
    }

private:
    unsigned char* shared_;
    int stage_ = 0;
};

// Sums of rows that are multiplied as they are.
struct RawSums
{
    WPK_DEVICE explicit RawSums(unsigned char*) {}
    template <class Sums>
    WPK_DEVICE void normalise(Sums&) const
    {
    }
};

// As the problem says.
template <class Problem, class Shape>
using SumsOf = Select<kNormsRows<Problem>, NormedSums<Problem, Shape>, RawSums>;

} // namespace wpk
