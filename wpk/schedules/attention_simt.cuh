// Attention on the ordinary cores, of tensors that lie in any way.
//
// A warp has one row of queries and walks 32 keys at a time: each lane computes the score of one key, then all lanes
// add the values of all 32 keys, each lane columns of its own. Exponentials are relative to the largest score so far
// (attention/tile.cuh says more).
//
// Problem: Q, K, V, Operands, EpilogueOperands and Y over (matrix, head, row, column), Scores an expression over the
// product and Operands, Epilogue one over the result and EpilogueOperands; heads, and how many of them share a head of
// K and V (sharing), depth, width, yPadding; and queries, keys and wide, where the launch passes none.
#pragma once

#include <wpk/kernels/attention/lengths.cuh>
#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// One warp's row.
template <class Problem, class Lengths>
struct AttentionRow
{
    static constexpr int kGroup = 4; // neighbours of a row that are loaded at once
    static constexpr int kColumns = ceilDivide(Problem::width + Problem::yPadding, kWarpSize);
    const void* const* inputs;
    Lengths lengths;
    int matrix, head, row;
    float top = asFloat(0xff800000u), sum = 0.0f;
    float weighted[kColumns] = {};

    // The score of the query, which lies in shared memory, and a key; -inf beyond the last key.
    WPK_DEVICE float score(const float* query, int key) const
    {
        if (key >= lengths.keys()) // @last_key
            return asFloat(0xff800000u);
        const AttentionRowPlace at = lengths.key(matrix, key);
        float product = 0.0f;
        for (int first = 0; first < Problem::depth; first += kGroup)
        {
            float values[kGroup];
            const int valid = minOf(kGroup, Problem::depth - first);
            loadRowAs<typename Problem::K, kGroup>(
                inputs[1], at.template offset<typename Problem::K>(head / Problem::sharing, first), valid, values);
            for (int i = 0; i < valid; ++i)
                product += load<float, 1>(query + first + i)[0] * values[i];
        }
        float one[1] = {product};
        applyToRow<typename Problem::Scores, typename Problem::Operands, 1>(
            one, inputs + 3, 1, lengths.firstKey(matrix), head, row, key);
        return one[0];
    }

    // Adds the values of keys firstKey .. firstKey + 31, one of which has this lane's score.
    WPK_DEVICE void add(int firstKey, float score)
    {
        const float before = top;
        top = fmaxf(top, warpMax(score));
        // As long as all scores were -inf their differences are no numbers.
        const float base = top == asFloat(0xff800000u) ? 0.0f : top;
        const float factor = expf(before - base), weight = expf(score - base);
        sum = sum * factor + weight;
        for (float& each : weighted)
            each *= factor;
        const int count = minOf(kWarpSize, lengths.keys() - firstKey);
        for (int key = 0; key < count; ++key)
        {
            const float of = shuffle(weight, key);
            const AttentionRowPlace at = lengths.key(matrix, firstKey + key);
            WPK_UNROLL
            for (int i = 0; i < kColumns; ++i)
            {
                const int column = laneIndex() + i * kWarpSize;
                float value[1] = {};
                const int64 from =
                    at.template offset<typename Problem::V>(head / Problem::sharing, column); // @head_shared
                if (column < Problem::width)
                    loadRowAs<typename Problem::V, 1>(inputs[2], from, 1, value);
                weighted[i] += of * value[0];
            }
        }
    }

    // Writes the row and its padding.
    WPK_DEVICE void finish(void* y) const
    {
        const float total = warpSum(sum);
        const AttentionRowPlace at = lengths.query(matrix, row);
        const float scale = reciprocal(total); // of no score but -inf: 0 * inf, no number, as ONNX has it
        WPK_UNROLL
        for (int i = 0; i < kColumns; ++i)
        {
            const int column = laneIndex() + i * kWarpSize;
            if (column >= Problem::width + Problem::yPadding)
                continue;
            const bool empty = Problem::emptyRowsAreZero && !(total > 0.0f);
            float value[1] = {empty ? 0.0f : weighted[i] * scale};
            if (column < Problem::width)
                finishAttention<Problem>(value, inputs, 1, at, head, column);
            storeRowOf<typename Problem::Y, 1>(
                y, at.template offset<typename Problem::Y>(head, column), Problem::width - column, 1, value);
        }
    }
};

} // namespace detail

template <class Problem, class Schedule, class Lengths>
WPK_DEVICE void attentionOfWarps(const AttentionInputs<Problem>& inputs, int n, const Lengths& lengths, void* y)
{
    __shared__ float queries[Schedule::warps][Problem::depth];
    releaseIfEarly<Schedule>();
    const int64 item = static_cast<int64>(blockIdx.x) * Schedule::warps + warpIndex();
    const bool inside = item < static_cast<int64>(n) * Problem::heads * lengths.queries();
    const AttentionPlace at = lengths.template place<1>(inside ? item : 0);
    if (inside && laneIndex() < lengths.keys())
        prefetchConstants<Problem::operand_constants>(
            typename Problem::Operands{}, inputs.at + 3, lengths.firstKey(at.matrix), at.head, at.block, laneIndex());
    waitIfEarly<Schedule>(); // @previous_awaited
    if (!inside)
        return; // a whole warp
    float* const query = queries[warpIndex()];
    for (int column = laneIndex(); column < Problem::depth; column += kWarpSize)
    {
        float value[1];
        loadRowAs<typename Problem::Q, 1>(inputs.at[0],
            lengths.query(at.matrix, at.block).template offset<typename Problem::Q>(at.head, column), 1, value);
        store<float, 1>(query + column, {{value[0]}});
    }
    __syncwarp();
    detail::AttentionRow<Problem, Lengths> row{inputs.at, lengths, at.matrix, at.head, at.block};
    for (int firstKey = 0; firstKey < lengths.keys(); firstKey += kWarpSize)
        row.add(firstKey, row.score(query, firstKey + laneIndex()));
    row.finish(y);
}

template <class Problem, class Schedule>
WPK_DEVICE void attentionSimt(AttentionInputs<Problem> inputs, int n, void* y)
{
    attentionOfWarps<Problem, Schedule>(inputs, n, typename Problem::Lengths{}, y);
}

template <class Problem, class Schedule>
WPK_DEVICE void attentionSimt(AttentionInputs<Problem> inputs, int n, int queries, int keys, void* y)
{
    attentionOfWarps<Problem, Schedule>(inputs, n, FreeLengths<Problem>(queries, keys), y);
}

} // namespace wpk
