// A block of a warpgroup kernel (sm_90a): one to three consumer warpgroups, and a producer warp, whose first lane feeds
// the pipeline between them; another warp's brings the residual, where that is in shared memory (residual.cuh).
// docs/wgmma_kernel.md shows how they run.
//
// A block computes one tile, 64 rows in each warpgroup, or the steps of one that split-K leaves it; or it is
// persistent, and computes tiles one after another, while its pipeline goes on from tile to tile. Then two warpgroups
// may have tiles of their own in turns (CUTLASS calls it ping-pong): one stores while the other multiplies. Or those
// that share its tiles begin some steps one behind the other, so that each stores while the others multiply.
#pragma once

#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/sums/split_k.cuh>
#include <wpk/kernels/tiles/cluster_sum.cuh>
#include <wpk/kernels/wgmma/handed_registers.cuh>
#include <wpk/kernels/wgmma/multiply_fp32.cuh>
#include <wpk/kernels/wgmma/producer.cuh>
#include <wpk/kernels/wgmma/residual.cuh>
#include <wpk/kernels/wgmma/scheduler.cuh>

namespace wpk
{

// acc += A * B over the steps of `range`, by the form of wgmma that the operands need; `state` goes on. ConstantB: no
// kernel writes B. `rows` look at A (norm_rows.cuh). All consumers call it; with ping-pong those of `group`, in their
// turn.
template <class T, class Shape, bool ConstantB, class Range, class Limits, class Rows>
WPK_DEVICE void multiplySteps(typename Shape::Sum (&acc)[Shape::accumulators], unsigned char* shared,
    const WgmmaPipeline<Shape>& pipeline, PipelineState<Shape::stages>& state, const Range& range, const Limits& limits,
    Rows& rows, int group = 0)
{
    constexpr bool isPlain = !Shape::splitFp32 && isSame<Limits, NoLimits>;
    static_assert(isPlain || isSame<Rows, RawRows>, "rows are normalised that are multiplied as they lie");
    const auto passTurn = [&]
    {
        if constexpr (Shape::pingpong)
            pipeline.passTurn(group);
    };
    if constexpr (Shape::splitFp32)
    {
        multiplySplitFp32<ConstantB>(acc, shared, pipeline, state, range.count, limits, range.first * Shape::boxes);
    }
    else if constexpr (!isSame<Limits, NoLimits>)
    {
        multiplyFromRegisters<T>(acc, pipeline, state, range.count, limits, range.first * Shape::boxes);
    }
    else
    {
        multiplyFromShared<T, Shape>(acc, pipeline, state, range.count, rows, passTurn);
    }
}

// Where the parts of other blocks come in.
template <class Shape>
WPK_DEVICE ClusterParts<Shape> clusterParts(unsigned char* shared)
{
    return {shared + WgmmaPipeline<Shape>::bytes()};
}

template <class Problem, class Shape>
using RegistersOf = HandedRegisters<Problem, Shape::groups>;

// Whether this thread asks for the residual's tiles: one of the warp behind the producer's.
template <class Shape, class Residual>
WPK_DEVICE bool bringsResidual()
{
    return Residual::exists && threadIdx.x == Shape::consumers + kWarpSize;
}

// acc += A * B over the block's steps of one tile. Behind it `shared` is free. All threads of the block call it.
template <class T, class Shape, class Range, class Loader, class Limits, class Rows, class Residual, class Window>
WPK_DEVICE void multiplyOneTile(typename Shape::Sum (&acc)[Shape::accumulators], unsigned char* shared,
    const Range& range, const Loader& loader, const Limits& limits, Rows& rows, Residual& residual, const Window& tile)
{
    const WgmmaPipeline<Shape> pipeline(sharedAddress(shared));
    const bool isProducer = threadIdx.x == Shape::consumers, isConsumer = warpIndex() < Shape::warpsM;
    if (isProducer)
    {
        if constexpr (Shape::splitCluster > 1)
            clusterParts<Shape>(shared).init();
        residual.init();
        pipeline.init();
    }
    if constexpr (Shape::multicast > 1)
        syncCluster(); // @cluster_ready: no block multicasts tiles before the other ones' barriers are there
    else if constexpr (Shape::splitCluster > 1)
        arriveReadCluster();
    if (isProducer)
        producePrologue<Shape>(pipeline, loader, range.first, range.count);
    __syncwarp();    // the producer's lanes took different ways
    __syncthreads(); // @barriers_ready, for everyone
    if constexpr (Shape::splitCluster > 1 && Shape::multicast == 1)
        waitCluster(); // @parts_ready: those of all blocks; here it has long been passed
    if (Shape::early)
        waitForPrevious(); // as the producer has: from here on memory is touched that kernels in front touch
    if (isConsumer)
    {
        PipelineState<Shape::stages> state;
        multiplySteps<T, Shape, Loader::kConstantB>(acc, shared, pipeline, state, range, limits, rows);
        if (Shape::multicast > 1)
            pipeline.release(state.lastStage());
    }
    else if (isProducer)
    {
        produceOneTile<Shape>(pipeline, loader, range.first, range.count);
    }
    else if (bringsResidual<Shape, Residual>())
    {
        residual.produceTile(tile);
    }
    __syncwarp();
    __syncthreads(); // @stages_free, for the epilogue
}

// One tile, or the steps of one that are this block's part of split-K: then the blocks of a cluster store a share of
// the rows each; without a cluster the last one to come stores all. The epilogue is staged in the pipeline's stages.
template <class Problem, class Shape, class Range, class Loader, class Rows, class Limits, class Residual>
WPK_DEVICE void computeOneTile(unsigned char* shared, const Range& range, const Loader& loader,
    const OutputWindow<Rows>& window, const Partials& partials, const Limits& limits, Residual& residual)
{
    typename Shape::Sum acc[Shape::accumulators] = {};
    RowsOf<Problem, Shape, OutputWindow<Rows>> normed(window);
    if (warpIndex() < Shape::warpsM)
    {
        prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::consumers>(window);
        prefetchColumnSums<Problem, Shape::blockN>(window);
    }
    multiplyOneTile<typename Problem::Multiply, Shape>(acc, shared, range, loader, limits, normed, residual, window);
    if (!Shape::byColumns && warpIndex() < Shape::warpsM)
        normed.normalise(acc, range.part);
    if constexpr (Shape::splitCluster > 1)
    {
        storeSumOfCluster<Problem>(acc, shared, clusterParts<Shape>(shared), range.part, window);
    }
    // @parts_summed
    else if (range.template sum<Shape::consumers, true>(acc, shared, partials) && warpIndex() < Shape::warpsM)
    {
        if constexpr (Shape::byColumns)
        {
            ColumnPieces<Problem, Shape>::store(acc, normed, shared, window);
        }
        else
        {
            typename Shape::Sum tiles[Shape::tilesM][Shape::tilesN][4];
            memcpy(tiles, acc, sizeof tiles);
            residual.wait(0);
            storeTiles<Problem, Shape>(tiles, shared, residual.on(0, window, window.firstRow));
        }
    }
}

// The tiles of a persistent block. While the consumers store a tile, the producer asks for steps of the next ones, as
// many as there are stages. So the first copies are waited for once a block; and the epilogue's staging lies behind the
// pipeline, not in it. With ping-pong the second warpgroup begins with the second tile, and each passes over the
// other's.
template <class Problem, class Shape, class Loader, class Maps, class Rows, class Limits, class Residual>
WPK_DEVICE void computePersistent(
    unsigned char* shared, const Maps& maps, const OutputWindow<Rows>& output, const Limits& limits, Residual& residual)
{
    const WgmmaPipeline<Shape> pipeline(sharedAddress(shared));
    PersistentTileScheduler<Shape> tiles(output);
    const bool isProducer = threadIdx.x == Shape::consumers;
    if (isProducer)
    {
        residual.init();
        pipeline.init();
        Loader(maps, output).prefetch();
    }
    if constexpr (Shape::multicast > 1)
        syncCluster(); // @persistent_cluster_ready
    __syncwarp();      // the producer's lanes took different ways
    __syncthreads();   // @persistent_barriers_ready, for everyone
    using Registers = RegistersOf<Problem, Shape>;
    if (warpIndex() >= Shape::warpsM)
    {
        Registers::release();
        if (isProducer)
            producePersistent<Shape, Loader>(pipeline, tiles, maps, output);
        if (Shape::early)
            waitForPrevious();
        if (bringsResidual<Shape, Residual>())
        {
            WPK_KEEP_LOOP
            for (; !tiles.isDone(); tiles.advance()) // @next_residual
                residual.produceTile(tiles.window(output));
        }
        return;
    }
    Registers::claim();
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::consumers>(tiles.window(output));
    prefetchColumnSums<Problem, Shape::blockN>(tiles.window(output));
    if (Shape::early)
        waitForPrevious(); // @epilogue_awaits: it touches memory that kernels in front touch
    const int group = warpIndex() / Shape::kGroupWarps;
    const SplitRange<1, Loader::kSteps> whole;
    PipelineState<Shape::stages> state;
    const auto passOver = [&]
    {
        tiles.advance();
        state.skip(Loader::kSteps); // @steps_skipped
    };
    if (Shape::pingpong && group != 0)
        passOver();
    int turn = group ^ 1; // @first_turn
    // @tiles_in_turn
    WPK_KEEP_LOOP
    for (; !tiles.isDone(); tiles.advance())
    {
        typename Shape::Sum acc[Shape::accumulators] = {}; // @sums_zeroed
        RowsOf<Problem, Shape, OutputWindow<Rows>> normed(tiles.window(output));
        if constexpr (Shape::pingpong)
            pipeline.awaitTurn(group, turn);
        turn ^= 1;
        multiplySteps<typename Problem::Multiply, Shape, Loader::kConstantB>(
            acc, shared, pipeline, state, whole, limits, normed, group);
        pipeline.release(state.lastStage()); // @last_stage_released
        if (Shape::splitFp32)
            syncThreads(1, Shape::consumers); // nobody reads what is cut off of the last box any more
        if constexpr (Shape::pingpong)
            residual.beginTile(group, turn ^ group);                           // @own_pieces
        const int above = Shape::pingpong ? group * Shape::kProductRows : 0;   // rows of the other group's warps
        const auto tile = tiles.window(output), window = tile.from(-above, 0); // @group_placed
        unsigned char* const staging = shared + pipeline.bytes();              // @staged_beside
        if constexpr (Shape::byColumns)
        {
            ColumnPieces<Problem, Shape>::store(acc, normed, staging, window);
        }
        else
        {
            normed.normalise(acc, whole.part);
            storeTilesInLoop<Problem, Shape>(acc, staging, window, residual, tile.firstRow);
        }
        if constexpr (Shape::pingpong)
            passOver();
    }
}

// A block's work, whose tiles Loader brings (producer.cuh). `window` is the block's tile, of a persistent block the
// whole output; `limits` keep A (channel_limits.cuh).
template <class Problem, class Schedule, class Shape, class Loader, class Rows, class Limits = NoLimits>
WPK_DEVICE void computeWgmma(unsigned char* shared, const WgmmaMaps<Schedule>& maps, const OutputWindow<Rows>& window,
    const Partials& partials, const Limits& limits = Limits())
{
    using Residual = ResidualOf<Problem, Schedule, Shape>;
    constexpr int kBehind = Residual::kBytes + WgmmaPipeline<Shape>::blockBytes();
    // @bytes_compared
    static_assert(
        Schedule::shared_bytes == kBehind + Residual::kBarrierBytes, "Python and C++ count the same shared memory");
    static_assert(!kNormsRows<Problem> || kTakesMoments<Problem> || Schedule::split == 1,
        "a row is normalised by all of its elements");
    static_assert(
        Residual::exists == (Schedule::residual != 0), "an operand is in shared memory if the schedule says so");
    static_assert(Shape::persistent || !RegistersOf<Problem, Shape>::handsRegisters,
        "the producer of a block with one tile is a warp, which hands nothing over");
    Residual residual(shared, sharedAddress(shared) + kBehind, maps.at[Residual::exists ? 2 : 1]);
    unsigned char* const memory = shared + Residual::kBytes;
    if constexpr (Shape::persistent)
    {
        computePersistent<Problem, Shape, Loader>(memory, maps, window, limits, residual);
    }
    else
    {
        const SplitRange<Schedule::split, Loader::kSteps> range;
        const Loader loader(maps, window);
        computeOneTile<Problem, Shape>(memory, range, loader, window, partials, limits, residual);
    }
}

} // namespace wpk
