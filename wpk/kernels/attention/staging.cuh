// Where the warps of attention that share rows of queries meet.
#pragma once

#include <wpk/kernels/attention/lengths.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/numbers/near_exponential.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// Where the warps that share rows leave what they have: sums of exponentials, what they are relative to, and weighted
// values.
template <class Shape>
struct AttentionStaging
{
    static constexpr int kRows = Shape::warpsN * Shape::rows, kStride = Shape::stagingStride;
    float* const base;

    WPK_DEVICE float* top(int part, int row) const
    {
        return base + part * Shape::rows + row;
    }
    WPK_DEVICE float* sum(int part, int row) const
    {
        return base + kRows + part * Shape::rows + row;
    }
    WPK_DEVICE float* values(int part, int row) const
    {
        return base + 2 * kRows + (part * Shape::rows + row) * kStride;
    }

    template <class Warp>
    WPK_DEVICE void put(const Warp& warp) const
    {
        const int lane = laneIndex();
        WPK_UNROLL
        for (int half = 0; half < 2; ++half)
        {
            const int row = warp.row() + half * 8;
            const float pairs = warp.sum[half] + shuffleXor(warp.sum[half], 1);
            const float whole = pairs + shuffleXor(pairs, 2);
            if (lane % 4 == 0)
            {
                store<float, 1>(top(warp.part(), row), {{warp.top[half]}});
                store<float, 1>(sum(warp.part(), row), {{whole}});
            }
            WPK_UNROLL
            for (int tile = 0; tile < Shape::pairsD * 2; ++tile)
            {
                const float(&from)[4] = warp.weighted[tile / 2][0][tile % 2];
                float* const to = values(warp.part(), row) + tile * 8 + lane % 4 * 2;
                store<float, 2>(to, {{from[half * 2], from[half * 2 + 1]}});
            }
        }
    }

    // A row's V columns of the result.
    template <int V, bool EmptyRowsAreZero>
    WPK_DEVICE void get(int row, int column, float (&result)[V]) const
    {
        float largest = asFloat(0xff800000u), total = 0.0f;
        WPK_UNROLL
        for (int part = 0; part < Shape::warpsN; ++part)
            largest = fmaxf(largest, load<float, 1>(top(part, row))[0]);
        largest = largest == asFloat(0xff800000u) ? 0.0f : largest;
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            result[v] = 0.0f;
        WPK_UNROLL
        for (int part = 0; part < Shape::warpsN; ++part)
        {
            const float own = load<float, 1>(top(part, row))[0];
            const float factor = weightOf<Shape::exactWeights>(own - largest); // @part_scaled
            total += factor * load<float, 1>(sum(part, row))[0];
            const auto weighted = load<float, V>(values(part, row) + column);
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                result[v] += factor * weighted[v];
        }
        const float scale = reciprocal(total); // of no score but -inf: 0 * inf, no number, as ONNX has it
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            result[v] = EmptyRowsAreZero && !(total > 0.0f) ? 0.0f : result[v] * scale;
    }
};

// Writes a block's rows and their padding.
template <class Problem, class Shape, class Lengths>
WPK_DEVICE void storeAttention(const AttentionStaging<Shape>& staging, const void* const* inputs, void* y,
    const Lengths& lengths, int matrix, int head, int firstRow)
{
    using Y = typename Problem::Y;
    constexpr int V = 4, kRoom = Problem::width + Problem::yPadding, kVectors = ceilDivide(kRoom, V);
    for (int item = static_cast<int>(threadIdx.x); item < Shape::rows * kVectors; item += Shape::threads)
    {
        const int row = item / kVectors, column = item % kVectors * V;
        if (firstRow + row >= lengths.queries()) // @last_query
            break;
        const AttentionRowPlace at = lengths.query(matrix, firstRow + row);
        float values[V] = {};
        if (column < Problem::width)
        {
            staging.template get<V, Problem::emptyRowsAreZero>(row, column, values);
            finishAttention<Problem>(values, inputs, minOf(V, Problem::width - column), at, head, column);
        }
        storeRowOf<Y, V>(
            y, at.template offset<Y>(head, column), Problem::width - column, minOf(V, kRoom - column), values);
    }
}

} // namespace wpk
