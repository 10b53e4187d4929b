// Convolution of groups of few channels on the tensor cores: a block brings the patch under its output pixels to shared
// memory once, of several groups side by side, and multiplies each group by itself (tile_groups.cuh). The whole
// reduction at once: filters stay in registers, and are asked for before the kernel in front has ended.
//
// Grid: tiles of output pixels, tiles of filters, which are whole groups. Problem and Schedule are named by
// conv_grouped.py. Filters are packed as rows of (r, s, channel).
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/tiles/tile_groups.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>

namespace wpk
{

// acc[i][first + j] = the sums of a run of tiles that have one group.
template <class T, class Shape, class Problem>
WPK_DEVICE void multiplyGroup(float (&acc)[Shape::tilesM][Shape::tilesN][4], int run,
    const GroupFragments<Shape, Problem>& fragments, const GroupFilters<Shape, Problem>& filters)
{
    constexpr int kTiles = Shape::tilesOfGroup;
    float sums[Shape::tilesM][kTiles][4] = {};
    WPK_UNROLL
    for (int step = 0; step < Shape::steps; ++step)
    {
        uint32 a[Shape::tilesM][4], b[kTiles][2];
        fragments.load(step, run, a);
        WPK_UNROLL
        for (int j = 0; j < kTiles; ++j)
        {
            b[j][0] = filters.words[run * kTiles + j][step][0];
            b[j][1] = filters.words[run * kTiles + j][step][1];
        }
        mmaTile(T{}, sums, a, b);
    }
    WPK_UNROLL
    for (int i = 0; i < Shape::tilesM; ++i)
    {
        WPK_UNROLL
        for (int j = 0; j < kTiles; ++j)
            memcpy(acc[i][run * kTiles + j], sums[i][j], sizeof sums[i][j]);
    }
}

// The sums of a tile whose filters are of several groups: a product of each group with its own filters alone, of which
// its columns are kept.
template <class T, class Shape, class Problem>
WPK_DEVICE void multiplyParts(float (&acc)[Shape::tilesM][Shape::tilesN][4], int tile,
    const GroupFragments<Shape, Problem>& fragments, const GroupFilters<Shape, Problem>& filters)
{
    const int lane = laneIndex();
    WPK_UNROLL
    for (int part = 0; part < Shape::parts; ++part)
    {
        const bool hasFilter = lane / 4 / Problem::k == part, hasSums = lane % 4 * 2 / Problem::k == part; // @own_part
        float sums[Shape::tilesM][1][4] = {};
        WPK_UNROLL
        for (int step = 0; step < Shape::steps; ++step)
        {
            uint32 a[Shape::tilesM][4], b[1][2];
            fragments.load(step, tile * Shape::parts + part, a);
            b[0][0] = hasFilter ? filters.words[tile][step][0] : 0;
            b[0][1] = hasFilter ? filters.words[tile][step][1] : 0;
            mmaTile(T{}, sums, a, b);
        }
        WPK_UNROLL
        for (int i = 0; i < Shape::tilesM; ++i)
        {
            WPK_UNROLL
            for (int e = 0; e < 4; ++e)
                acc[i][tile][e] = hasSums ? sums[i][0][e] : acc[i][tile][e];
        }
    }
}

template <class Problem, class Schedule>
WPK_DEVICE void convGrouped(Inputs<2 + Problem::Operands::count> inputs, int n, void* y)
{
    using T = typename Problem::Multiply;
    using Shape = GroupShape<T, Problem, Schedule>;
    using Tile = OutputTile<Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");
    (void)n; // the grid has as many tiles

    constexpr int kFilters = Problem::k * Problem::groups;
    const int firstFilter = static_cast<int>(blockIdx.y) * Shape::blockN;
    const Tile tile(static_cast<int>(blockIdx.x));
    const auto window =
        OutputWindow{tile, inputs.at + 2, y, Shape::blockM, kFilters, kFilters + Problem::y_padding}.from(
            0, firstFilter);
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(window);
    GroupFilters<Shape, Problem> filters;
    filters.load(inputs.at[1], firstFilter);
    waitIfEarly<Schedule>(); // @previous_awaited
    copyGroups<Shape, Problem>(shared, inputs.at[0], tile, firstFilter / Problem::k * Problem::c);
    waitCopies<0>(); // @patch_there
    __syncthreads(); // @patch_for_all
    releaseIfEarly<Schedule>();
    const GroupFragments<Shape, Problem> fragments(shared);
    float acc[Shape::tilesM][Shape::tilesN][4] = {};
    WPK_UNROLL
    for (int run = 0; run < Shape::runs; ++run)
    {
        if constexpr (Shape::parts > 1)
            multiplyParts<T>(acc, run, fragments, filters);
        else
            multiplyGroup<T>(acc, run, fragments, filters);
    }
    storeTiles<Problem, Shape>(acc, shared + Shape::patchBytes, window);
}

} // namespace wpk
