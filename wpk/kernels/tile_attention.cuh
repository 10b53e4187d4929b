// The parts of attention on the tensor cores: a warp's sixteen rows of queries, and where warps that share rows meet.
//
// The scores of a step of keys stay in the registers that the product left them in, which are also those that the
// product with the values wants: they never go through shared memory. Exponentials are relative to the largest score so
// far; what was summed before is scaled down where a larger one comes (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018; Dao et al., "FlashAttention", 2022, algorithm 1).
//
// Problem and Schedule are named by attention_mma.py.
#pragma once

#include <wpk/kernels/near_exponential.cuh>
#include <wpk/kernels/split_fp32.cuh>
#include <wpk/kernels/tensor.cuh>
#include <wpk/kernels/tile_rows.cuh>
#include <wpk/kernels/warp.cuh>

namespace wpk
{

template <class Problem, class Schedule>
struct AttentionShape
{
    using T = typename Problem::Element;
    static constexpr int warpsM = Schedule::warps_m, warpsN = Schedule::warps_n, blockN = Schedule::block_n;
    static constexpr int stages = Schedule::stages, threads = warpsM * warpsN * kWarpSize;
    static constexpr bool exactWeights = isSame<typename Problem::Multiply, SplitFp32>;
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

// Two neighbours of a row of weights, as one word of a fragment.
template <class T>
WPK_DEVICE uint32 packPair(float first, float second)
{
    const Vector<T, 2> pair{{fromFloat<T>(first), fromFloat<T>(second)}};
    uint32 word;
    memcpy(&word, &pair, sizeof(word));
    return word;
}

// The sixteen rows of a warp: [0] of a pair is row lane / 4, [1] the one 8 below.
template <class Problem, class Shape, class Lengths>
struct AttentionWarp
{
    using T = typename Shape::T;
    using Multiply = typename Problem::Multiply;
    static constexpr bool kNarrow = sizeof(T) == 2;
    static constexpr int kDepthSteps = Shape::Keys::chunks / 2;
    // Steps whose weighted values are summed from zero, since tensor cores cut sums; fp32 does so at every step.
    static constexpr int kApart = isSame<Multiply, SplitFp32> ? 1 : 4;
    Lengths lengths;
    float top[2] = {asFloat(0xff800000u), asFloat(0xff800000u)};
    float sum[2] = {};
    float weighted[Shape::pairsD][1][2][4] = {};
    float scores[Shape::pairsN][1][2][4];
    OperandRows<typename Problem::Operands, 2> operands[Shape::pairsN * 2][2];

    WPK_DEVICE int row() const
    {
        return warpIndex() / Shape::warpsN * 16 + laneIndex() / 4;
    }
    WPK_DEVICE int part() const
    {
        return warpIndex() % Shape::warpsN;
    }
    // The first of this lane's two keys of tile `tile`, of those of a step.
    WPK_DEVICE int key(int tile) const
    {
        return part() * Shape::blockN + tile * 8 + laneIndex() % 4 * 2;
    }

    // What the scores are computed with, of the keys from firstKey on.
    WPK_DEVICE void loadOperands(const void* const* pointers, int matrix, int head, int firstRow, int firstKey)
    {
        if constexpr (Problem::Operands::count > 0)
        {
            WPK_UNROLL
            for (int i = 0; i < Shape::pairsN * 4; ++i)
            {
                const int column = firstKey + key(i / 2), query = firstRow + row() + i % 2 * 8; // @mask_row
                const int valid = minOf(2, lengths.keys() - column);
                if (valid > 0)
                    operands[i / 2][i % 2].load(
                        pointers, valid, lengths.firstKey(matrix), head, minOf(query, lengths.queries() - 1), column);
            }
        }
    }

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

    // Scores become weights relative to the largest score so far; returns what earlier sums are multiplied by.
    WPK_DEVICE void weigh(int firstKey, float (&factor)[2])
    {
        float largest[2] = {top[0], top[1]};
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
        {
            float& score = scores[i / 8][0][i / 4 % 2][i % 4];
            const int half = i % 4 / 2;
            score = Problem::Scores::evaluate(score, operands[i / 4][half].values[i % 2]);
        }
        if (firstKey + Shape::keys > lengths.keys()) // @last_step
            hideBeyond(firstKey);
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
            largest[i % 4 / 2] = fmaxf(largest[i % 4 / 2], scores[i / 8][0][i / 4 % 2][i % 4]);
        WPK_UNROLL
        for (int half = 0; half < 2; ++half)
        {
            largest[half] = fmaxf(largest[half], shuffleXor(largest[half], 1));
            largest[half] = fmaxf(largest[half], shuffleXor(largest[half], 2)); // @largest_shared
            const float before = top[half];
            top[half] = largest[half];
            factor[half] = weightOf<Shape::exactWeights>(before - base(half));
            sum[half] *= factor[half]; // @sum_rescaled
        }
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
        {
            float& score = scores[i / 8][0][i / 4 % 2][i % 4];
            score = weightOf<Shape::exactWeights>(score - base(i % 4 / 2));
            sum[i % 4 / 2] += score;
        }
    }

    // Keys of a step that are behind the last one have no weight.
    WPK_DEVICE void hideBeyond(int firstKey)
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 8; ++i)
            if (firstKey + key(i / 4) + i % 2 >= lengths.keys()) // @last_key
                scores[i / 8][0][i / 4 % 2][i % 4] = asFloat(0xff800000u);
    }

    // What exponents are relative to: 0 as long as all scores were -inf, whose differences are no numbers.
    WPK_DEVICE float base(int half) const
    {
        return top[half] == asFloat(0xff800000u) ? 0.0f : top[half];
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
