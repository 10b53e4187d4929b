// A feed-forward block by warpgroups (sm_90a): e(h(norm(X) U) V) in one kernel, without the hidden rows in memory.
//
// A block has one to three consumer warpgroups, with 64 rows of a tile each (feed_forward_group.cuh), and a producer,
// which TMA feeds them from (feed_forward_tiles.cuh). Persistent blocks compute tiles one after another. One of its
// warpgroups computes hidden numbers while others multiply.
//
// Problem and Schedule are named by feed_forward.py; maps: of the rows, of the first and of the second weight, each
// (column, row).
#pragma once

#include <wpk/kernels/places/dims.cuh>
#include <wpk/kernels/tiles/fetched_tiles.cuh>
#include <wpk/kernels/wgmma/feed_forward_group.cuh>

namespace wpk
{

// Rows, weights, operands of the hidden columns, their sums, and operands of the output.
template <class Problem>
inline constexpr int kFeedForwardInputs =
    3 + Problem::HiddenOperands::count + kRowNormInputs<Problem> + Problem::Operands::count;

template <class Problem, class Schedule>
WPK_DEVICE void feedForwardWgmma(
    Inputs<kFeedForwardInputs<Problem>> inputs, int leading, const TensorMaps<3>& maps, void* y)
{
    using Shape = FeedForwardShape<Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");
    const FeedForwardPipelines<Shape> pipelines(sharedAddress(shared));
    const int m = static_cast<int>(dimension<typename Problem::M>(leading));
    const bool isConsumer = warpIndex() < Shape::warpsM;
    if (threadIdx.x == Shape::threads)
    {
        pipelines.init();
        WPK_UNROLL
        for (int map = 0; map < 3; ++map)
            prefetchTensorMap(maps.at[map]);
    }
    __syncwarp();
    __syncthreads(); // @barriers_ready
    using Producer = FeedForwardProducer<Schedule, Shape>;
    Producer producer(pipelines, maps);
    if (threadIdx.x == Producer::kOfWeights)
        producer.bringFirst();
    __syncwarp();
    waitIfEarly<Schedule>(); // @previous_awaited
    if (!isConsumer)
    {
        Shape::release();
        if (laneIndex() == 0)
            producer.run(BlockTiles<Shape>(m));
        return;
    }
    Shape::claim();
    constexpr int kBehind = kFeedForwardInputs<Problem> - Problem::Operands::count;
    const OutputWindow<MatrixRows> output{
        {0, 0}, inputs.at + kBehind, y, m, Problem::n, Problem::n + Problem::y_padding};
    using Group = FeedForwardGroup<Problem, Shape>;
    Group group(pipelines, inputs.at + 3);
    WPK_KEEP_LOOP
    for (BlockTiles<Shape> tiles(m); !tiles.isDone(); tiles.advance())
    {
        const auto window = output.at(tiles.firstRow(), 0); // @tile_placed
        unsigned char* const staging = shared + Shape::stagingAt;
        using Columns = OutputColumns<Problem>;
        if constexpr (Shape::byColumns)
        {
            group.run([] {});
            ColumnPieces<Columns, Shape>::store(group.outputs, RawRows{}, staging, window);
        }
        else
        {
            FetchedTiles<Columns, Shape, MatrixRows, Group::kFreeRegisters> tile;
            group.run([&] { tile.fetch(window); });
            tile.store(group.outputs, staging, window);
        }
    }
}

} // namespace wpk
