// The sums of a warp that walks down a pair of strips of a grouped convolution (tile_groups.cuh).
#pragma once

#include <wpk/kernels/numbers/bits.cuh>
#include <wpk/kernels/tiles/tile_groups.cuh>

namespace wpk
{

// Sums of a step down the strips, of all of a warp's filters.
template <class Shape>
struct GroupSums
{
    float of[Shape::bundles][1][Shape::bundleTiles][4];
};

// sums += a row of the patch, of its bundle `one`, times the filters' row `down`, of tiles from `firstTile` on.
template <class T, class Shape, class Problem>
WPK_DEVICE void addBundle(float (&sums)[1][Shape::bundleTiles][4], const GroupRow<Shape>& row, int one,
    const GroupFilters<Shape, Problem>& filters, int firstTile, int down)
{
    WPK_UNROLL
    for (int step = 0; step < Shape::rowSteps; ++step)
    {
        uint32 b[Shape::bundleTiles][2];
        WPK_UNROLL
        for (int j = 0; j < Shape::bundleTiles; ++j)
        {
            b[j][0] = filters.words[firstTile + j][down][step * 2];
            b[j][1] = filters.words[firstTile + j][down][step * 2 + 1];
        }
        mmaTile(T{}, sums, row.steps[one][step], b);
    }
    if constexpr (Shape::isOdd)
    {
        uint32 b[Shape::bundleTiles][1];
        WPK_UNROLL
        for (int j = 0; j < Shape::bundleTiles; ++j)
            b[j][0] = filters.words[firstTile + j][down][Shape::rowChunks - 1];
        mmaHalfTile(T{}, sums, row.left[one], b);
    }
}

// Adds what lies under row `row` of the strips to the sums of the output rows that it is under, which lie in turns:
// those of row n in sums[n % live]. `turn` is row % live, a constant. None for rows behind the last one.
template <class T, class Shape, class Problem>
WPK_DEVICE void addCarried(GroupSums<Shape> (&sums)[Shape::live], const GroupFragments<Shape, Problem>& fragments,
    const GroupFilters<Shape, Problem>& filters, int row, int turn, int mostDown)
{
    WPK_UNROLL
    for (int bundle = 0; bundle < Shape::bundles; bundle += Shape::atOnce)
    {
        GroupRow<Shape> loaded;
        fragments.load(row, bundle, loaded);
        WPK_UNROLL
        for (int down = mostDown; down >= 0; --down)
        {
            if (row - down >= Shape::walk) // @rows_end
                break;
            auto& target = sums[(turn + Shape::live - down) % Shape::live]; // @turn_of_row
            WPK_UNROLL
            for (int one = 0; one < Shape::atOnce; ++one)
            {
                auto& of = target.of[bundle + one];
                if (down == 0) // @sums_begun: the first row that it is under
                    memset(of, 0, sizeof of);
                addBundle<T>(of, loaded, one, filters, (bundle + one) * Shape::bundleTiles, down);
            }
        }
    }
}

// The sums of output row `step` of the strips, whatever lies between the rows of the patch that it needs.
template <class T, class Shape, class Problem>
WPK_DEVICE void addStep(GroupSums<Shape>& sums, const GroupFragments<Shape, Problem>& fragments,
    const GroupFilters<Shape, Problem>& filters, int step)
{
    sums = {};
    WPK_UNROLL
    for (int bundle = 0; bundle < Shape::bundles; bundle += Shape::atOnce)
    {
        WPK_UNROLL
        for (int down = 0; down < Problem::filter_h; ++down)
        {
            GroupRow<Shape> loaded;
            fragments.load(step * Problem::stride_h + down * Problem::dilation_h, bundle, loaded);
            WPK_UNROLL
            for (int one = 0; one < Shape::atOnce; ++one)
                addBundle<T>(sums.of[bundle + one], loaded, one, filters, (bundle + one) * Shape::bundleTiles, down);
        }
    }
}

// Makes zeros of what belongs to the other group of each bundle.
template <class Shape, class Problem>
WPK_DEVICE void keepGroup(GroupRow<Shape>& row, int group)
{
    const auto isOwn = [=](int chunk)
    {
        const int channel = chunk % Shape::bundleChunks * Shape::kChunk + laneIndex() % 4 * 2;
        return channel / Problem::c == group; // @own_pixels
    };
    WPK_UNROLL
    for (int one = 0; one < Shape::atOnce; ++one)
    {
        WPK_UNROLL
        for (int chunk = 0; chunk < Shape::rowSteps * 2; ++chunk)
        {
            uint32* const words = row.steps[one][chunk / 2][0] + chunk % 2 * 2;
            words[0] = isOwn(chunk) ? words[0] : 0;
            words[1] = isOwn(chunk) ? words[1] : 0;
        }
        uint32* const left = row.left[one][0];
        if (Shape::isOdd && !isOwn(Shape::rowChunks - 1))
            left[0] = left[1] = 0;
    }
}

// addStep of bundles of two groups, each group by itself: an infinite channel times the zeros in the other group's
// filters is no number.
template <class T, class Shape, class Problem>
WPK_DEVICE void addApart(GroupSums<Shape>& sums, const GroupFragments<Shape, Problem>& fragments,
    const GroupFilters<Shape, Problem>& filters, int step)
{
    const int firstColumn = warpIndex() % Shape::warpsN * Shape::warpN + laneIndex() % 4 * 2;
    WPK_KEEP_LOOP
    for (int group = 0; group < 2; ++group)
    {
        WPK_UNROLL
        for (int bundle = 0; bundle < Shape::bundles; bundle += Shape::atOnce)
        {
            float own[Shape::atOnce][1][Shape::bundleTiles][4] = {};
            WPK_UNROLL
            for (int down = 0; down < Problem::filter_h; ++down)
            {
                GroupRow<Shape> loaded;
                fragments.load(step * Problem::stride_h + down * Problem::dilation_h, bundle, loaded);
                keepGroup<Shape, Problem>(loaded, group);
                WPK_UNROLL
                for (int one = 0; one < Shape::atOnce; ++one)
                    addBundle<T>(own[one], loaded, one, filters, (bundle + one) * Shape::bundleTiles, down);
            }
            WPK_UNROLL
            for (int j = 0; j < Shape::atOnce * Shape::bundleTiles; ++j)
            {
                const int column = firstColumn + (bundle * Shape::bundleTiles + j) * 8;
                const bool hasSums = column % Shape::bundleFilters / Problem::k == group; // @own_sums
                auto& of = sums.of[bundle + j / Shape::bundleTiles][0][j % Shape::bundleTiles];
                WPK_UNROLL
                for (int e = 0; e < 4; ++e)
                    of[e] = hasSums ? own[j / Shape::bundleTiles][0][j % Shape::bundleTiles][e] : of[e];
            }
        }
    }
}

// Whether a lane of the warp has a sum that is no number, or sums that add up to none.
template <class Shape>
WPK_DEVICE bool hasNan(const GroupSums<Shape>& sums)
{
    float total[4];
    memcpy(total, sums.of[0][0][0], sizeof total);
    WPK_UNROLL
    for (int j = 1; j < Shape::tilesN; ++j)
    {
        WPK_UNROLL
        for (int e = 0; e < 4; ++e)
            total[e] += sums.of[j / Shape::bundleTiles][0][j % Shape::bundleTiles][e];
    }
    return ballot(isNan((total[0] + total[1]) + (total[2] + total[3]))) != 0; // @nan_seen
}

// Walks down a pair of strips, and calls `store` with each row and its sums.
template <class T, class Shape, class Problem, class Store>
WPK_DEVICE void walkStrips(
    const GroupFragments<Shape, Problem>& fragments, const GroupFilters<Shape, Problem>& filters, const Store& store)
{
    constexpr int kLive = Shape::live, kAhead = Problem::filter_h - 1;
    GroupSums<Shape> sums[kLive] = {};
    if constexpr (Shape::isCarried)
    {
        WPK_UNROLL
        for (int row = 0; row < kAhead; ++row)
            addCarried<T>(sums, fragments, filters, row, row, row);
    }
    WPK_KEEP_LOOP
    for (int first = 0; first < Shape::walk; first += kLive)
    {
        WPK_UNROLL
        for (int turn = 0; turn < kLive; ++turn)
        {
            const int step = first + turn;
            if (Shape::walk % kLive != 0 && step >= Shape::walk)
                break;
            if constexpr (Shape::isCarried)
                addCarried<T>(sums, fragments, filters, step + kAhead, turn + kAhead, kAhead);
            else
                addStep<T>(sums[turn], fragments, filters, step);
            if constexpr (Shape::isMixed)
            {
                if (hasNan(sums[turn]))
                    addApart<T>(sums[turn], fragments, filters, step);
            }
            store(step, sums[turn]);
        }
    }
}

} // namespace wpk
