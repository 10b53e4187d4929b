// A consumer warpgroup of a feed-forward block (sm_90a): 64 rows of a tile, from the first hidden columns to the last.
//
// Hidden sums become hidden numbers where wgmma leaves them, which is where the second product wants its left factor:
// they never go through memory, and are rounded to the 16 bits in which they would lie there. While the numbers of a
// step are multiplied, the sums of the next one become numbers; other warpgroups of the SM multiply meanwhile. With
// ping-pong they ask for products in turns, so that not all of them compute at once; without, each asks when it is
// ready.
#pragma once

#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/wgmma/boxed_row_norm.cuh>
#include <wpk/kernels/wgmma/column_pieces.cuh>
#include <wpk/kernels/wgmma/feed_forward_tiles.cuh>

namespace wpk
{

// The first product, as column_epilogue.cuh and row_norm.cuh see a problem: its columns are the hidden ones, those of
// the last step that do not exist are 0.
template <class Problem, class Shape>
struct HiddenColumns : Problem
{
    using Operands = typename Problem::HiddenOperands;
    using Epilogue = typename Problem::HiddenEpilogue;
    using Y = Strided<typename Problem::Multiply, 8, 0, 0, 0, 1>;
    static constexpr int n = Problem::hidden, y_padding = Shape::steps * Shape::columns - n;
};

// What a row's hidden sums are scaled by, of a lane's two rows: nothing, or what its elements say, all of which lie in
// the tile.
template <class Problem, class Shape, bool Norms = kNormsRows<Problem>>
struct HiddenScale
{
    WPK_DEVICE void look(SharedAddress) {}
    WPK_DEVICE RawSums sums() const
    {
        return {};
    }
};
template <class Problem, class Shape>
struct HiddenScale<Problem, Shape, true>
{
    RowScale rows[2];

    // All lanes call it, with their warpgroup's first row.
    WPK_DEVICE void look(SharedAddress tile)
    {
        scaleByTile<Problem, typename Shape::RowTile>(rows, tile);
    }
    WPK_DEVICE ScaledSums<Problem> sums() const
    {
        return {rows};
    }
};

template <class Problem, class Shape>
class FeedForwardGroup
{
    using T = typename Problem::Multiply;
    using Hidden = HiddenColumns<Problem, Shape>;
    using List = typename detail::WithColumnSums<Hidden, typename Hidden::Operands, detail::losesMean<Hidden>()>::Type;
    using Pipelines = FeedForwardPipelines<Shape>;
    using Window = OutputWindow<MatrixRows>;
    static constexpr int kSlices = Shape::columns / 16;

public:
    float outputs[Shape::accumulators]; // of a tile, behind `run`

    // `operands` are those of the hidden columns, and behind them their sums.
    WPK_DEVICE FeedForwardGroup(const Pipelines& pipelines, const void* const* operands)
        : pipelines_(pipelines), columns_{{0, 0}, operands, nullptr, 0, Problem::hidden, Problem::hidden}
    {
    }

    // All steps of the next tile.
    WPK_DEVICE void run()
    {
        WPK_UNROLL
        for (int i = 0; i < Shape::accumulators; ++i)
            outputs[i] = 0.0f; // @sums_zeroed
        if constexpr (Shape::isResident)
        {
            up_ = {};
            down_ = {};
        }
        pipelines_.rows(group()).wait(rows_);
        scale_.look(pipelines_.rowTile(group(), rows_.stage)); // @rows_of_norm
        pipelines_.up.wait(up_);
        pipelines_.turns.await(group(), ++turn_);
        fenceWgmma();
        multiplyUp();
        pipelines_.turns.pass(group());
        loadColumns(0);
        waitWgmma<0>(sums_); // @first_sums_awaited
        releaseUp(Shape::steps == 1);
        packHidden(hidden_, 0);
        keepUntilHere(hidden_); // the next sums are written over those that they are made of
        WPK_KEEP_LOOP
        for (int step = 1; step < Shape::steps; ++step)
        {
            // Between both products nobody waits: ptxas would make them wait for each other.
            pipelines_.up.wait(up_);
            pipelines_.down.wait(down_);
            pipelines_.turns.await(group(), ++turn_);
            fenceWgmma();
            multiplyUp();
            multiplyDown();
            pipelines_.turns.pass(group());
            loadColumns(step);
            waitWgmma<1>(sums_); // @sums_awaited
            releaseUp(step + 1 == Shape::steps);
            uint32 next[kSlices][4];
            packHidden(next, step);
            computeFirst(anyBit(next));
            waitWgmma<0>(outputs); // @outputs_added
            keepUntilHere(hidden_);
            releaseDown();
            memcpy(hidden_, next, sizeof next);
            keepUntilHere(hidden_);
            keepUntilHere(outputs);
        }
        pipelines_.down.wait(down_);
        fenceWgmma();
        multiplyDown();
        waitWgmma<0>(outputs); // @last_outputs_added
        keepUntilHere(hidden_);
        releaseDown();
    }

private:
    static WPK_DEVICE int group()
    {
        return warpIndex() / Shape::kGroupWarps;
    }

    WPK_DEVICE void multiplyUp()
    {
        multiplyAlong<T, typename Shape::RowTile, typename Shape::UpTile>(
            sums_, pipelines_.rowTile(group(), rows_.stage), pipelines_.upTile(up_.stage));
        commitWgmma();
    }
    WPK_DEVICE void multiplyDown()
    {
        multiplyAcross<T, typename Shape::DownTile>(outputs, hidden_, pipelines_.downTile(down_.stage));
        commitWgmma();
    }

    // A step's sums are there; behind the last step's nobody needs the rows any more.
    WPK_DEVICE void releaseUp(bool isLast)
    {
        if constexpr (!Shape::isResident)
            pipelines_.up.release(up_.stage); // @up_released
        up_.advance();
        if (!isLast)
            return;
        __syncwarp();                                  // all lanes have looked at them
        pipelines_.rows(group()).release(rows_.stage); // @rows_released
        rows_.advance();
    }
    WPK_DEVICE void releaseDown()
    {
        if constexpr (!Shape::isResident)
            pipelines_.down.release(down_.stage); // @down_released
        down_.advance();
    }

    // Depends on all of them.
    static WPK_DEVICE uint32 anyBit(const uint32 (&hidden)[kSlices][4])
    {
        uint32 bits = 0;
        WPK_UNROLL
        for (int slice = 0; slice < kSlices; ++slice)
        {
            WPK_UNROLL
            for (int i = 0; i < 4; ++i)
                bits |= hidden[slice][i];
        }
        return bits;
    }

    // What belongs to a step's columns, while they are summed.
    WPK_DEVICE void loadColumns(int step)
    {
        WPK_UNROLL
        for (int slice = 0; slice < kSlices; ++slice)
            pieces_[slice].load(columns_.at(0, step * Shape::columns + slice * 16)); // @columns_of_step
    }
    WPK_DEVICE void packHidden(uint32 (&hidden)[kSlices][4], int step) const
    {
        const auto& sums = reinterpret_cast<const float(&)[kSlices][2][4]>(sums_);
        WPK_UNROLL
        for (int slice = 0; slice < kSlices; ++slice)
        {
            const Window window = columns_.at(0, step * Shape::columns + slice * 16);
            pieces_[slice].pack(hidden[slice], sums[slice], 0, scale_.sums(), window); // @hidden_packed
        }
    }

    const Pipelines& pipelines_;
    Window columns_;
    HiddenScale<Hidden, Shape> scale_;
    PipelineState<Shape::rowStages> rows_;
    PipelineState<Shape::stages> up_, down_;
    int turn_ = 0;
    float sums_[Shape::columns / 2];
    uint32 hidden_[kSlices][4];
    ColumnPiece<Hidden, 16, List> pieces_[kSlices];
};

} // namespace wpk
