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
    static constexpr bool kIsWhole = Problem::hidden % Shape::columns == 0; // the last step has all of its columns

public:
    float outputs[Shape::accumulators]; // of a tile, behind `run`
    // Of a thread, behind the last step's hidden numbers: what hidden sums and what belongs to their columns were in,
    // but for a few where ptxas may have less than it asks for (handed_registers.py).
    static constexpr int kFreeRegisters =
        Shape::columns / 2 + Shape::columns / 16 * detail::bytesOfColumn(List{}) - (Shape::handsRegisters ? 0 : 8);

    // `operands` are those of the hidden columns, and behind them their sums.
    WPK_DEVICE FeedForwardGroup(const Pipelines& pipelines, const void* const* operands)
        : pipelines_(pipelines),
          group_(shuffle(warpIndex() / Shape::kGroupWarps, 0)),
          columns_{{0, 0}, operands, nullptr, 0, Problem::hidden, Problem::hidden}
    {
    }

    // All steps of the next tile. `numbered` is called when there are all hidden numbers, before the last products are
    // asked for.
    template <class Numbered>
    WPK_DEVICE void run(const Numbered& numbered)
    {
        constexpr int kLast = Shape::steps - 1;
        if constexpr (Shape::isResident)
            up_ = {};
        pipelines_.rows(group_).wait(rows_);
        scale_.look(pipelines_.rowTile(group_, rows_.stage)); // @rows_of_norm
        awaitWeights(pipelines_.up, up_);
        pipelines_.turns.await(group_, turnOf(0));
        fenceWgmma();
        multiplyUp();
        pipelines_.turns.pass(group_);
        loadColumns(0);
        waitWgmma<0>(sums_); // @first_sums_awaited
        releaseUp(kLast == 0);
        packHidden(hidden_[0], 0);
        keepUntilHere(hidden_[0]); // the next sums are written over those that they are made of
        WPK_KEEP_LOOP
        for (int step = 1; step <= kLast; step += 2)
        {
            multiplyBoth(hidden_[1], hidden_[0], step);
            if (kLast % 2 == 1 && step == kLast)
                break;
            multiplyBoth(hidden_[0], hidden_[1], step + 1);
        }
        numbered();
        awaitWeights(pipelines_.down, down_);
        fenceWgmma();
        multiplyDown(hidden_[kLast % 2], kLast > 0 ? 1 : 0);
        waitWgmma<0>(outputs); // @last_outputs_added
        keepUntilHere(hidden_[kLast % 2]);
        releaseDown(down_);
        areThere_ = true;
        oddTiles_ ^= 1;
    }

private:
    using Numbers = uint32[kSlices][4];

    // The hidden numbers of a step, while those of the step before are multiplied. They are not copied: products of the
    // next step read them where they are.
    WPK_DEVICE void multiplyBoth(Numbers& numbers, Numbers& before, int step)
    {
        // Between both products nobody waits: ptxas would make them wait for each other.
        awaitWeights(pipelines_.up, up_);
        awaitWeights(pipelines_.down, down_);
        pipelines_.turns.await(group_, turnOf(step));
        fenceWgmma();
        multiplyUp();
        multiplyDown(before, step > 1 ? 1 : 0); // @outputs_begun
        pipelines_.turns.pass(group_);
        loadColumns(step);
        waitWgmma<1>(sums_); // @sums_awaited
        const auto multiplied = down_;
        releaseUp(step + 1 == Shape::steps);
        packHidden(numbers, step);
        computeFirst(anyBit(numbers));
        waitWgmma<0>(outputs); // @outputs_added
        keepUntilHere(before);
        releaseDown(multiplied);
        keepUntilHere(numbers);
        keepUntilHere(outputs);
    }

    // Of the group's turns that of a step, or one of the same parity, which is all that matters.
    WPK_DEVICE int turnOf(int step) const
    {
        return (Shape::steps % 2 == 1 ? oddTiles_ : 0) + step + 1; // @turns_counted
    }

    // Weights that stay are awaited by the first tile.
    template <class Barriers>
    WPK_DEVICE void awaitWeights(const Barriers& barriers, const PipelineState<Shape::stages>& state) const
    {
        if (!Shape::isResident || !areThere_)
            barriers.wait(state); // @weights_awaited
    }

    WPK_DEVICE void multiplyUp()
    {
        multiplyAlong<T, typename Shape::RowTile, typename Shape::UpTile>(
            sums_, pipelines_.rowTile(group_, rows_.stage), pipelines_.upTile(up_.stage));
        commitWgmma();
    }
    // With `accumulate` 0 the outputs begin.
    WPK_DEVICE void multiplyDown(const Numbers& numbers, int accumulate)
    {
        multiplyAcross<T, typename Shape::DownTile>(outputs, numbers, pipelines_.downTile(down_.stage), accumulate);
        commitWgmma();
    }

    // A step's sums are there; behind the last step's nobody needs the rows any more.
    WPK_DEVICE void releaseUp(bool isLast)
    {
        if constexpr (!Shape::isResident)
            pipelines_.up.release(up_.stage); // @up_released
        down_ = up_;
        up_.advance();
        if (!isLast)
            return;
        __syncwarp();                                 // all lanes have looked at them
        pipelines_.rows(group_).release(rows_.stage); // @rows_released
        rows_.advance();
    }
    WPK_DEVICE void releaseDown(const PipelineState<Shape::stages>& state) const
    {
        if constexpr (!Shape::isResident)
            pipelines_.down.release(state.stage); // @down_released
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
            pieces_[slice].template load<kIsWhole>(
                columns_.at(0, step * Shape::columns + slice * 16)); // @columns_of_step
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
    int group_; // from one lane, so that ptxas knows that it is the same in all of them
    Window columns_;
    HiddenScale<Hidden, Shape> scale_;
    PipelineState<Shape::rowStages> rows_;
    PipelineState<Shape::stages> up_, down_; // the second weight's stage is that of the step before
    bool areThere_ = false;                  // weights that stay
    int oddTiles_ = 0;                       // whether so many tiles lie behind it
    float sums_[Shape::columns / 2];
    Numbers hidden_[2]; // of steps in turn
    ColumnPiece<Hidden, 16, List> pieces_[kSlices];
};

} // namespace wpk
