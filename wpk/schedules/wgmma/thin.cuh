// Products of many rows by a weight that stays in shared memory (sm_90a): e(norm(X) W) of rows that may be normalised.
//
// A block has some warpgroups, each with 64 rows of a tile (thin_group.cuh), and the whole weight (thin_tiles.cuh).
// Persistent blocks compute tiles one after another.
//
// Problem and Schedule are named by thin.py; maps: of the rows (k, m) and of the weight (k, n).
#pragma once

#include <wpk/kernels/places/dims.cuh>
#include <wpk/kernels/wgmma/thin_group.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void thinWgmma(Inputs<2 + Problem::Operands::count + kRowNormInputs<Problem>> inputs, int leading,
    const TensorMaps<2>& maps, const Outputs& outputs)
{
    using Shape = ThinShape<Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");
    const ThinMemory<Shape> memory{sharedAddress(shared)};
    const int m = static_cast<int>(dimension<typename Problem::M>(leading));
    if (threadIdx.x == 0)
    {
        memory.init();
        prefetchTensorMap(maps.at[0]);
        prefetchTensorMap(maps.at[1]);
        memory.bringWeight(maps.at[1]);
    }
    __syncwarp();
    __syncthreads(); // @barriers_ready
    constexpr int kStored = Problem::n + Problem::y_padding, kColumns = Shape::steps * Shape::columns;
    const OutputWindow<MatrixRows> output{
        {0, 0}, inputs.at + 2, outputs.y, m, Problem::n, kStored, 0, 0, outputs.moments};
    const OutputWindow<MatrixRows> first = output.at(BlockTiles<Shape>(m).firstRow(), 0);
    prefetchTileConstants<Problem, Shape::rows, kColumns, Shape::threads>(first);
    prefetchColumnSums<Problem, kColumns>(first);
    waitIfEarly<Schedule>(); // @previous_awaited
    ThinGroup<Problem, Schedule, Shape>(memory, maps.at[0], shared + Shape::stagingAt, output).run();
}

} // namespace wpk
