// Moments of rows that a product stores beside them (epilogue.cuh), for a product behind it that normalises the rows
// (row_norm.cuh): of each group of neighbouring columns the mean and the mean square of the differences from it, or
// of an RMS norm the mean square alone. They are of elements as they are rounded in memory.
//
// Each group has a mean of its own, so that no variance is lost to it, and groups are put together as Chan, Golub and
// LeVeque do: "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances", 1979.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/numbers/number.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// Columns of a group, of rows of so many (wpk/problems/row_moments.py).
WPK_DEVICE constexpr int momentsGroup(int columns)
{
    return columns % 64 == 0 ? 64 : 32;
}

// Whether a product stores them: its unit names their place in memory, Moments, whose width is the numbers of a group.
template <class Problem>
inline constexpr bool kStoresMoments = requires { typename Problem::Moments; };

// Those of a group of columns, V of which each of neighbouring lanes has, in all of them. All lanes of a warp call it.
template <int Numbers, int Group, class T, int V>
WPK_DEVICE Vector<float, Numbers> momentsOfGroup(const T (&values)[V])
{
    constexpr int kLanes = Group / V;
    constexpr float kOne = 1.0f / Group;
    static_assert(kLanes * V == Group && (Numbers == 1 || Numbers == 2), "lanes share whole groups");
    float mean = 0.0f;
    if constexpr (Numbers == 2)
    {
        float sum = 0.0f;
        WPK_UNROLL
        for (int e = 0; e < V; ++e)
            sum += toFloat(values[e]);
        mean = warpSum<kLanes>(sum) * kOne; // @mean_of_group
    }
    float squares = 0.0f;
    WPK_UNROLL
    for (int e = 0; e < V; ++e)
    {
        const float difference = toFloat(values[e]) - mean; // @squares_centred
        squares += difference * difference;
    }
    squares = warpSum<kLanes>(squares) * kOne;
    if constexpr (Numbers == 2)
        return {{mean, squares}};
    else
        return {{squares}};
}

// Mean and mean square of a row of Groups groups, whose moments begin at `row`: those of the differences from the mean,
// or with one number a group those of the elements. Four lanes, neighbours, share a row; all lanes of a warp call it,
// those without a row with a null pointer.
template <int Numbers, int Groups>
WPK_DEVICE void mergeMoments(const float* row, float& mean, float& square)
{
    constexpr int kLanes = 4;
    constexpr float kOne = 1.0f / Groups;
    float first = 0.0f; // means are summed as differences from that of the first group
    if constexpr (Numbers == 2)
        first = row == nullptr ? 0.0f : *row;
    float sum = 0.0f, between = 0.0f, within = 0.0f;
    WPK_UNROLL
    for (int round = 0; round < ceilDivide(Groups, kLanes); ++round)
    {
        const int group = round * kLanes + laneIndex() % kLanes;
        if (row == nullptr || group >= Groups) // @groups_of_row
            continue;
        const auto moments = load<float, Numbers>(row + group * Numbers);
        within += moments[Numbers - 1];
        if constexpr (Numbers == 2)
        {
            const float difference = moments[0] - first;
            sum += difference;
            between += difference * difference;
        }
    }
    square = warpSum<kLanes>(within) * kOne;
    if constexpr (Numbers == 2)
    {
        const float shifted = warpSum<kLanes>(sum) * kOne;
        mean = first + shifted;
        square += larger(warpSum<kLanes>(between) * kOne - shifted * shifted, 0.0f); // @means_differ
    }
    else
    {
        mean = 0.0f;
    }
}

} // namespace wpk
