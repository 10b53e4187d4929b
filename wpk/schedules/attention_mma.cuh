// Attention on the tensor cores: softmax(s(Q K^T)) V in one kernel, without the scores in memory.
//
// A block has 16 `warps_m` rows of queries of one matrix. Its `warps_m` x `warps_n` warps walk the keys in steps of
// `warps_n` x `block_n`: a warp multiplies its 16 rows with its block_n keys, then the exponentials of its scores with
// their values (attention/tile.cuh). The warps that share rows meet in shared memory at the end.
//
// Problem: Multiply (Half, Bfloat16, Tf32 or SplitFp32), Element, as it lies; Q, K, V, Operands, EpilogueOperands and Y
// over (matrix, head, row, column), Scores an expression over the product and Operands, Epilogue one over the result
// and EpilogueOperands; heads, and how many of them share a head of K
// and V (sharing), depth, width, yPadding, emptyRowsAreZero; q_row, k_row, v_row, elements between rows, and q_copy,
// k_copy, v_copy, bytes that rows are aligned to and copied by; and queries, keys, wide and how they lie
// (Lengths, of attention/lengths.cuh), where the launch passes none.
#pragma once

#include <wpk/kernels/attention/staging.cuh>
#include <wpk/kernels/attention/tile.cuh>
#include <wpk/kernels/barriers/early_launch.cuh>

namespace wpk
{

// A block's queries, and the pipeline of its keys and values, as they are copied. Two groups of copies a step.
template <class Problem, class Shape, class Lengths>
class AttentionTiles
{
    using T = typename Shape::T;

public:
    WPK_DEVICE AttentionTiles(
        unsigned char* shared, const void* const* inputs, const Lengths& lengths, int matrix, int head)
        : shared_(shared),
          lengths_(lengths),
          matrix_(matrix),
          q_(static_cast<const T*>(inputs[0]) + Problem::Q::offset(lengths.query(matrix, 0).outer, head, 0, 0)),
          k_(static_cast<const T*>(inputs[1])
              + Problem::K::offset(lengths.key(matrix, 0).outer, head / Problem::sharing, 0, 0)),
          v_(static_cast<const T*>(inputs[2]) // @head_shared
              + Problem::V::offset(lengths.key(matrix, 0).outer, head / Problem::sharing, 0, 0))
    {
    }

    WPK_DEVICE int steps() const
    {
        return (lengths_.keys() - 1) / Shape::keys + 1;
    }
    WPK_DEVICE SharedAddress queries() const
    {
        return sharedAddress(shared_);
    }
    WPK_DEVICE unsigned char* keys(int step) const
    {
        return shared_ + Shape::Queries::bytes + step % Shape::stages * Shape::stageBytes;
    }
    WPK_DEVICE unsigned char* values(int step) const
    {
        return keys(step) + Shape::Keys::bytes;
    }

    // Belongs to the first group.
    WPK_DEVICE void beginQueries(int firstRow) const
    {
        const auto place = [this](int row)
        {
            return lengths_.query(matrix_, row).row;
        };
        Shape::Queries::template copy<Shape::threads>(
            queries(), q_, Problem::q_row, firstRow, lengths_.queries(), place);
    }

    // Groups beyond the last step are empty.
    WPK_DEVICE void begin(int step) const
    {
        const bool more = step < steps();
        const int first = step * Shape::keys;
        const auto place = [this](int row)
        {
            return lengths_.key(matrix_, row).row;
        };
        if (more)
            Shape::Keys::template copy<Shape::threads>(
                sharedAddress(keys(step)), k_, Problem::k_row, first, lengths_.keys(), place);
        commitCopies();
        if (more)
            Shape::Values::template copy<Shape::threads>(
                sharedAddress(values(step)), v_, Problem::v_row, first, lengths_.keys(), place);
        commitCopies();
    }

private:
    unsigned char* const shared_;
    const Lengths lengths_;
    const int matrix_;
    const T *const q_, *const k_, *const v_;
};

template <class Problem, class Schedule, class Lengths>
WPK_DEVICE void attentionOfBlock(const AttentionInputs<Problem>& inputs, const Lengths& lengths, void* y)
{
    using Shape = AttentionShape<Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_assert(Schedule::shared_bytes == Shape::sharedBytes, "Python and C++ count the same shared memory");
    const AttentionPlace at = lengths.template place<Shape::rows>(static_cast<int64>(blockIdx.x));
    const int matrix = at.matrix, head = at.head, firstRow = at.block * Shape::rows;
    const AttentionTiles<Problem, Shape, Lengths> tiles(shared, inputs.at, lengths, matrix, head);
    const int steps = tiles.steps();
    prefetchBiases<Problem, Shape>(inputs.at + 3, lengths, at, Shape::stages);
    waitIfEarly<Schedule>();      // @previous_awaited
    tiles.beginQueries(firstRow); // @queries_begun
    WPK_KEEP_LOOP
    for (int step = 0; step < Shape::stages; ++step)
        tiles.begin(step);

    AttentionWarp<Problem, Shape, Lengths> warp{{lengths}};
    for (int step = 0; step < steps; ++step)
    {
        const int firstKey = step * Shape::keys;
        float factor[2];
        if (step + Shape::stages == steps)
            releaseIfEarly<Schedule>(); // all is asked for
        warp.loadOperands(inputs.at + 3, matrix, head, firstRow, firstKey);
        waitCopies<2 * Shape::stages - 1>(); // @keys_awaited
        __syncthreads();                     // @keys_there
        warp.multiplyKeys(tiles.queries(), sharedAddress(tiles.keys(step)));
        warp.weigh(firstKey, factor);
        waitCopies<2 * Shape::stages - 2>(); // @values_awaited
        __syncthreads();
        warp.multiplyValues(tiles.values(step), factor);
        __syncthreads(); // @slot_free, at last for the staging
        tiles.begin(step + Shape::stages);
    }
    const AttentionStaging<Shape> staging{reinterpret_cast<float*>(shared)};
    staging.put(warp);
    __syncthreads(); // @parts_there
    storeAttention<Problem>(staging, inputs.at, y, lengths, matrix, head, firstRow);
}

template <class Problem, class Schedule>
WPK_DEVICE void attentionMma(AttentionInputs<Problem> inputs, int n, void* y)
{
    attentionOfBlock<Problem, Schedule>(inputs, typename Problem::Lengths{}, y);
}

template <class Problem, class Schedule>
WPK_DEVICE void attentionMma(AttentionInputs<Problem> inputs, int n, int queries, int keys, void* y)
{
    attentionOfBlock<Problem, Schedule>(inputs, FreeLengths<Problem>(queries, keys), y);
}

} // namespace wpk
