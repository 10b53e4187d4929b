// A consumer warpgroup of attention (sm_90a): its 64 rows of queries, from the first step of keys to the last.
//
// Scores are products of what lies in shared memory. Weights are packed where the accumulators leave them, which is
// where the product with the values wants them: they never go through shared memory. While the values of a step are
// multiplied, the scores of the next one become weights (Shah et al., "FlashAttention-3", 2024, algorithm 2). With
// ping-pong groups ask for products in turns; without, each asks when it is ready.
#pragma once

#include <wpk/kernels/attention/rows.cuh>
#include <wpk/kernels/wgmma/attention_tiles.cuh>

namespace wpk
{

template <class Problem, class Shape, class Lengths>
struct AttentionGroup : AttentionRows<Problem, Shape, Lengths>
{
    using Rows = AttentionRows<Problem, Shape, Lengths>;
    using Rows::lengths, Rows::scores, Rows::weighted;
    using T = typename Shape::T;
    static constexpr int kScores = Shape::keys / 2, kWeighted = Shape::pairsD * 8; // of a thread
    uint32 weights[Shape::pairsN][4];

    // All steps; behind it `weighted` and `sum` are those of all keys. Stages of the last round are not released.
    WPK_DEVICE void run(
        const AttentionPipelines<Shape>& pipelines, const void* const* operands, const AttentionPlace& at, int steps)
    {
        const int firstRow = at.block * Shape::rows;
        float factor[2];
        PipelineState<Shape::stages> keys, values;
        waitBarrier(pipelines.queriesThere(), 0); // @queries_awaited
        this->loadOperands(operands, at.matrix, at.head, firstRow, 0);
        pipelines.keys.wait(keys);
        fenceWgmma();
        multiplyKeys(pipelines, keys);
        waitWgmma<0>(flatScores()); // @first_scores_awaited
        pipelines.keys.release(keys.stage);
        keys.advance();
        this->weigh(0, factor);
        packWeights();
        WPK_KEEP_LOOP
        for (int step = 1; step < steps; ++step)
        {
            const int firstKey = step * Shape::keys;
            // Between both products nobody waits: ptxas would make them wait for each other. The values are older.
            pipelines.keys.wait(keys);
            pipelines.values.wait(values);
            pipelines.turns.await(group(), step);
            fenceWgmma();
            multiplyKeys(pipelines, keys);
            multiplyValues(pipelines, values);
            pipelines.turns.pass(group());
            this->loadOperands(operands, at.matrix, at.head, firstRow, firstKey);
            waitWgmma<1>(flatScores());         // @scores_awaited
            pipelines.keys.release(keys.stage); // @keys_released
            keys.advance();
            this->weigh(firstKey, factor);
            computeFirst(asUint32(this->sum[0] + this->sum[1])); // of all weights
            waitWgmma<0>(flatWeighted());                        // @values_added
            keepUntilHere(weights);
            pipelines.values.release(values.stage);
            values.advance();
            WPK_UNROLL
            for (int i = 0; i < kWeighted; ++i)
                flatWeighted()[i] *= factor[i % 4 / 2]; // @values_rescaled
            packWeights();
            keepUntilHere(flatWeighted());
        }
        pipelines.values.wait(values);
        fenceWgmma();
        multiplyValues(pipelines, values);
        waitWgmma<0>(flatWeighted()); // @last_values_added
        keepUntilHere(weights);
    }

private:
    static WPK_DEVICE int group()
    {
        return warpIndex() / (Shape::groupThreads / kWarpSize);
    }
    WPK_DEVICE float (&flatScores())[kScores]
    {
        return reinterpret_cast<float(&)[kScores]>(scores);
    }
    WPK_DEVICE float (&flatWeighted())[kWeighted]
    {
        return reinterpret_cast<float(&)[kWeighted]>(weighted);
    }

    // scores = Q K^T, under way. Behind a fence.
    WPK_DEVICE void multiplyKeys(const AttentionPipelines<Shape>& pipelines, const PipelineState<Shape::stages>& state)
    {
        multiplyAlong<T, typename Shape::Queries, typename Shape::Keys>(
            flatScores(), pipelines.queryRows(group()), pipelines.keyTile(state.stage));
        commitWgmma();
    }

    // weighted += weights V, under way. Behind a fence.
    WPK_DEVICE void multiplyValues(
        const AttentionPipelines<Shape>& pipelines, const PipelineState<Shape::stages>& state)
    {
        multiplyAcross<T, typename Shape::Values>(flatWeighted(), weights, pipelines.valueTile(state.stage));
        commitWgmma();
    }

    // Accumulators as the left operand.
    WPK_DEVICE void packWeights()
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::pairsN * 4; ++i)
        {
            const float(&pair)[4] = scores[i / 4][0][i % 4 / 2];
            weights[i / 4][i % 4] = packPair<T>(pair[i % 2 * 2], pair[i % 2 * 2 + 1]); // @weights_packed
        }
        keepUntilHere(weights); // the next scores are written over those that they are made of
    }
};

} // namespace wpk
