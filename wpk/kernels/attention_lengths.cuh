// How many queries and keys a matrix of attention has: constants of the problem, or numbers that a launch passes.
//
// Where they are constants, tensors have a stride from one matrix to the next. Where they are passed there is none
// that is constant: matrices follow each other row by row, so that matrix m begins at row m * queries, or m * keys,
// and the leading stride is the one between rows.
#pragma once

#include <wpk/kernels/index.cuh>
#include <wpk/kernels/tensor.cuh>

namespace wpk
{

// Queries, keys, values, the operands of the scores and those of the epilogue.
template <class Problem>
using AttentionInputs = Inputs<3 + Problem::Operands::count + Problem::EpilogueOperands::count>;

// What happens to V neighbours of a row of the result, `valid` of which exist, before they are stored.
template <class Problem, int V>
WPK_DEVICE void finishAttention(
    float (&values)[V], const void* const* inputs, int valid, int firstQuery, int head, int row, int column)
{
    applyToRow<typename Problem::Epilogue, typename Problem::EpilogueOperands, V>(
        values, inputs + 3 + Problem::Operands::count, valid, firstQuery, head, row, column); // @epilogue_place
}

// A block of rows of queries of one head.
struct AttentionPlace
{
    int matrix, head, block;
};

template <class Problem>
struct FixedLengths
{
    static WPK_DEVICE constexpr int queries()
    {
        return Problem::queries;
    }
    static WPK_DEVICE constexpr int keys()
    {
        return Problem::keys;
    }
    // What Q and Y, or K, V and Operands, are indexed with along their leading axis.
    static WPK_DEVICE constexpr int firstQuery(int matrix)
    {
        return matrix;
    }
    static WPK_DEVICE constexpr int firstKey(int matrix)
    {
        return matrix;
    }

    // Block `index` of the blocks of Rows queries of all matrices.
    template <int Rows>
    static WPK_DEVICE AttentionPlace place(int64 index)
    {
        const Domain<Problem::wide, Problem::heads, ceilDivide(Problem::queries, Rows)> at(index);
        return {at.leading, at.at[0], at.at[1]};
    }
};

template <class Problem>
class FreeLengths
{
public:
    WPK_DEVICE FreeLengths(int queries, int keys) : queries_(queries), keys_(keys) {}

    WPK_DEVICE int queries() const
    {
        return queries_;
    }
    WPK_DEVICE int keys() const
    {
        return keys_;
    }
    WPK_DEVICE int firstQuery(int matrix) const
    {
        return matrix * queries_; // @first_query
    }
    WPK_DEVICE int firstKey(int matrix) const
    {
        return matrix * keys_; // @first_key
    }

    template <int Rows>
    WPK_DEVICE AttentionPlace place(int64 index) const
    {
        const int blocks = (queries_ - 1) / Rows + 1;
        const int64 rest = index / blocks;
        return {static_cast<int>(rest / Problem::heads), static_cast<int>(rest % Problem::heads),
            static_cast<int>(index - rest * blocks)};
    }

private:
    int queries_, keys_;
};

} // namespace wpk
