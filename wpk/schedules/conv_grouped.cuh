// Convolution of groups of few channels on the tensor cores: a block brings the patch under a tile of output pixels to
// shared memory once, of several groups side by side, and multiplies each group by its own filters
// (multiply_groups.cuh). Filters stay in registers for all of a block's tiles, and are asked for before the kernel in
// front has ended; the patch of the next tile is brought meanwhile.
//
// Grid: runs of tiles of output pixels, tiles of filters, which are whole groups. Problem and Schedule are named by
// conv_grouped.py. Filters are packed as fragments (group_fragments.py).
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/tiles/column_epilogue.cuh>
#include <wpk/kernels/tiles/multiply_groups.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>

namespace wpk
{

// The part of the output that begins at a block's first filter.
template <class Problem, class Shape, class Rows>
WPK_DEVICE OutputWindow<Rows> groupWindow(const Rows& rows, const void* const* operands, void* y, int firstFilter)
{
    constexpr int kFilters = Problem::k * Problem::groups;
    const OutputWindow<Rows> whole{rows, operands, y, Shape::blockM, kFilters, kFilters + Problem::y_padding};
    return whole.from(0, firstFilter);
}

template <class Problem, class Schedule>
WPK_DEVICE void convGrouped(Inputs<2 + Problem::Operands::count> inputs, int n, void* y)
{
    using T = typename Problem::Multiply;
    using Shape = GroupShape<T, Problem, Schedule>;
    using Tile = OutputTile<Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");

    const int firstFilter = static_cast<int>(blockIdx.y) * Shape::blockN;
    const int firstChannel = firstFilter / Problem::k * Problem::c;
    const int first = static_cast<int>(blockIdx.x) * Schedule::tiles;
    const int end = minOf(first + Schedule::tiles, n * Tile::kTiles); // @tiles_end
    unsigned char* const staging = shared + Shape::patches * Shape::patchBytes;
    const auto patch = [=](int index)
    {
        return sharedAddress(shared) + (index - first) % Shape::patches * Shape::patchBytes; // @patch_of_tile
    };
    prefetchTileConstants<Problem, Shape::blockM, Shape::blockN, Shape::threads>(
        groupWindow<Problem, Shape>(Tile(first), inputs.at + 2, y, firstFilter));
    GroupFilters<Shape, Problem> filters;
    filters.load(inputs.at[1], firstFilter);
    waitIfEarly<Schedule>(); // @previous_awaited
    copyGroups<Shape, Problem>(patch(first), inputs.at[0], Tile(first), firstChannel);
    using ByColumns = ColumnEpilogue<Problem, Shape>;
    ByColumns ofColumns;
    if constexpr (ByColumns::isFor)
        ofColumns = ByColumns(groupWindow<Problem, Shape>(Tile(first), inputs.at + 2, y, firstFilter));
    WPK_KEEP_LOOP
    for (int index = first; index < end; ++index)
    {
        waitCopies<0>(); // @patch_there
        __syncthreads(); // @patch_for_all: and the one before has been read
        if (Schedule::tiles > 1 && index + 1 < end)
        {
            copyGroups<Shape, Problem>(patch(index + 1), inputs.at[0], Tile(index + 1), firstChannel);
        }
        else
        {
            releaseIfEarly<Schedule>();
        }
        const Tile tile(index);
        WPK_KEEP_LOOP
        for (int pair = 0; pair < Shape::pairs; ++pair)
        {
            const auto store = [&](int step, const GroupSums<Shape>& sums)
            {
                float acc[Shape::tilesM][Shape::tilesN][4];
                memcpy(acc, sums.of, sizeof acc);
                const StripRows<Problem, Shape> rows{tile.image, tile.p + step, tile.q};
                const auto ofPair = groupWindow<Problem, Shape>(rows, inputs.at + 2, y, firstFilter)
                                        .from(pair * Shape::warpsM * Shape::warpM, 0);
                if constexpr (ByColumns::isFor)
                    ofColumns.store(acc, staging, ofPair);
                else
                    storeTiles<Problem, Shape, true>(acc, staging, ofPair);
            };
            walkStrips<T>(GroupFragments<Shape, Problem>(patch(index), pair), filters, store);
        }
    }
}

} // namespace wpk
