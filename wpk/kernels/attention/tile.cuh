// The products of attention by warps, each of which has sixteen rows of queries.
//
// The scores of a step of keys stay in the registers that the product left them in, which are also those that the
// product with the values wants: they never go through shared memory.
//
// Problem and Schedule are named by attention_mma.py.
#pragma once

#include <wpk/kernels/attention/rows.cuh>
#include <wpk/kernels/mma/split_fp32.cuh>
#include <wpk/kernels/tiles/tile_rows.cuh>

namespace wpk
{

template <class Problem, class Schedule>
struct AttentionShape
{
    using T = typename Problem::Element;
    static constexpr int warpsM = Schedule::warps_m, warpsN = Schedule::warps_n, blockN = Schedule::block_n;
    static constexpr int stages = Schedule::stages, threads = warpsM * warpsN * kWarpSize;
    static constexpr bool exactWeights = isSame<typename Problem::Multiply, SplitFp32>, foldsScale = false;
    static constexpr int rows = 16 * warpsM, keys = blockN * warpsN;
    using Queries = RowTile<T, rows, Problem::depth, Problem::q_copy>;
    using Keys = RowTile<T, keys, Problem::depth, Problem::k_copy>;
    using Values = RowTile<T, keys, Problem::width, Problem::v_copy>;
    static constexpr int stageBytes = Keys::bytes + Values::bytes;
    static constexpr int pairsN = blockN / 16, pairsD = Values::paddedColumns / 16;
    // Floats between staged rows; 8 more than the columns keep the writes free of conflicts.
    static constexpr int stagingStride = Values::paddedColumns + 8;
    // Two numbers of each staged row besides.
    static constexpr int stagingBytes = warpsN * rows * (2 + stagingStride) * 4;
    static constexpr int sharedBytes = maxOf(Queries::bytes + stages * stageBytes, stagingBytes);

    static_assert(threads <= 1024, "a block has at most 1024 threads");
};

// sums += a * b of fp32 accumulators; a and b are words of Element as ldmatrix gives them.
template <class Multiply, int TN>
WPK_DEVICE void addProducts(float (&sums)[1][TN][4], uint32 (&a)[1][4], uint32 (&b)[TN][2])
{
    if constexpr (isSame<Multiply, Tf32>)
    {
        WPK_UNROLL
        for (int i = 0; i < 4; ++i)
            a[0][i] = roundToTf32(asFloat(a[0][i]));
        WPK_UNROLL
        for (int i = 0; i < TN * 2; ++i)
            b[i / 2][i % 2] = roundToTf32(asFloat(b[i / 2][i % 2]));
    }
    mmaTile(Multiply{}, sums, a, b); // @products
}

template <class Problem, class Shape, class Lengths>
struct AttentionWarp : AttentionRows<Problem, Shape, Lengths>
{
    using Rows = AttentionRows<Problem, Shape, Lengths>;
    using Rows::part, Rows::row, Rows::scores, Rows::weighted;
    using T = typename Shape::T;
    using Multiply = typename Problem::Multiply;
    static constexpr bool kNarrow = sizeof(T) == 2;
    static constexpr int kDepthSteps = Shape::Keys::chunks / 2;
    // Steps whose weighted values are summed from zero, since tensor cores cut sums; fp32 does so at every step.
    static constexpr int kApart = isSame<Multiply, SplitFp32> ? 1 : 4;

    // scores = Q K^T
    WPK_DEVICE void multiplyKeys(SharedAddress queries, SharedAddress keys)
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
            scores[i / 8][0][i / 4 % 2][i % 4] = 0.0f;
        const int lane = laneIndex();
        WPK_UNROLL
        for (int step = 0; step < kDepthSteps; ++step)
        {
            uint32 a[1][4];
            loadMatrix4(a[0], queries + Shape::Queries::offset(row() / 16 * 16 + lane % 16, step * 2 + lane / 16));
            WPK_UNROLL
            for (int pair = 0; pair < Shape::pairsN; ++pair)
            {
                uint32 words[4], left[1][4] = {{a[0][0], a[0][1], a[0][2], a[0][3]}};
                const int at = part() * Shape::blockN + pair * 16 + lane % 8 + lane / 16 * 8;
                loadMatrix4(words, keys + Shape::Keys::offset(at, step * 2 + lane / 8 % 2));
                uint32 b[2][2] = {{words[0], words[1]}, {words[2], words[3]}};
                addProducts<Multiply>(scores[pair], left, b);
            }
        }
    }

    // weighted = weighted * factor + weights V
    WPK_DEVICE void multiplyValues(const unsigned char* values, const float (&factor)[2])
    {
        constexpr int kSteps = Shape::blockN / (kNarrow ? 16 : 8);
        WPK_UNROLL
        for (int pair = 0; pair < Shape::pairsD; ++pair)
        {
            float(&total)[2][4] = weighted[pair][0];
            WPK_UNROLL
            for (int i = 0; i < 8; ++i)
                total[i / 4][i % 4] *= factor[i % 4 / 2]; // @values_rescaled
            WPK_UNROLL
            for (int first = 0; first < kSteps; first += kApart)
            {
                float added[1][2][4] = {};
                float(&sums)[1][2][4] = kApart == 1 ? weighted[pair] : added;
                WPK_UNROLL
                for (int step = first; step < minOf(first + kApart, kSteps); ++step)
                {
                    uint32 a[1][4], b[2][2];
                    weightsOf(step, a[0]);
                    valuesOf(values, step, pair, b);
                    addProducts<Multiply>(sums, a, b);
                }
                WPK_UNROLL
                for (int i = 0; i < 8 && kApart > 1; ++i)
                    total[i / 4][i % 4] += added[0][i / 4][i % 4];
            }
        }
    }

private:
    // Accumulators as the left operand. Of fp32 weights, which a fragment holds one a word, the pair of keys that a
    // lane has stands for the fragment's k t and t + 4: the order of a sum's terms is free, as long as the values' is
    // the same.
    WPK_DEVICE void weightsOf(int step, uint32 (&a)[4]) const
    {
        if constexpr (kNarrow)
        {
            WPK_UNROLL
            for (int i = 0; i < 4; ++i)
            {
                const float(&pair)[4] = scores[step][0][i / 2];
                a[i] = packPair<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]); // @weights_packed
            }
        }
        else
        {
            const float(&tile)[4] = scores[step / 2][0][step % 2];
            a[0] = asUint32(tile[0]);
            a[1] = asUint32(tile[2]);
            a[2] = asUint32(tile[1]);
            a[3] = asUint32(tile[3]);
        }
    }

    // The right operand: columns 16 pair .. 16 pair + 15 of the values of a step's keys.
    WPK_DEVICE void valuesOf(const unsigned char* values, int step, int pair, uint32 (&b)[2][2]) const
    {
        const int lane = laneIndex(), first = part() * Shape::blockN;
        if constexpr (kNarrow)
        {
            uint32 words[4];
            const int at = Shape::Values::offset(first + step * 16 + lane % 16, pair * 2 + lane / 16);
            loadMatrix4Transposed(words, sharedAddress(values) + at);
            WPK_UNROLL
            for (int i = 0; i < 4; ++i)
                b[i / 2][i % 2] = words[i];
        }
        else
        {
            WPK_UNROLL
            for (int i = 0; i < 4; ++i)
            {
                // @value_row
                const int at = first + step * 8 + lane % 4 * 2 + i % 2, column = pair * 16 + i / 2 * 8 + lane / 4;
                const unsigned char* const chunk = values + Shape::Values::offset(at, column / 4);
                b[i / 2][i % 2] = load<uint32, 1>(reinterpret_cast<const uint32*>(chunk) + column % 4)[0];
            }
        }
    }
};

} // namespace wpk
