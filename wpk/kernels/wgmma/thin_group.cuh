// A warpgroup of a block that multiplies rows by a weight that stays (sm_90a): 64 rows of each of the block's tiles.
//
// Its first thread asks for rows as soon as those that lay there have been read, so that there is no producer whose
// order of warpgroups would tie one to another. What is computed of sums, and their way to memory, takes longer than
// their products: other warpgroups multiply meanwhile, and with `ahead` the products of the next columns are under way
// in sums of their own.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>
#include <wpk/kernels/wgmma/boxed_row_norm.cuh>
#include <wpk/kernels/wgmma/column_pieces.cuh>
#include <wpk/kernels/wgmma/thin_tiles.cuh>

namespace wpk
{

// What a tile's sums are scaled by: by nothing, where its rows are multiplied as they are.
template <class Problem, class Shape, bool Norms = kNormsRows<Problem>>
struct ThinScale : RawRows
{
    template <class Window>
    WPK_DEVICE void take(SharedAddress, const Window&)
    {
    }
    template <class Sums, class Window>
    WPK_DEVICE void normalise(Sums&, const Window&) const
    {
    }
};
// By moments that a kernel in front has stored, or by those of the rows, all of whose elements lie in the tile.
template <class Problem, class Shape>
struct ThinScale<Problem, Shape, true>
{
    RowScale rows[1][2];

    // All lanes call it, with their warpgroup's rows and the window of the block's tile.
    template <class Window>
    WPK_DEVICE void take(SharedAddress tile, const Window& window)
    {
        if constexpr (kTakesMoments<Problem>)
        {
            const int first = window.firstRow + warpIndex() * 16 + laneIndex() / 4; // @moments_of_warp
            scaleByMoments<Problem>(rows[0], window, first);
        }
        else
        {
            scaleByTile<Problem, typename Shape::RowTile>(rows[0], tile); // @rows_of_norm
        }
    }
    WPK_DEVICE ScaledSums<Problem> scaled(int) const
    {
        return {rows[0]};
    }
    template <class Window>
    WPK_DEVICE void normalise(float (&sums)[Shape::accumulators], const Window& window) const
    {
        auto& products = reinterpret_cast<float(&)[1][Shape::columns / 8][4]>(sums);
        normaliseProducts<Problem>(products, rows, window, 0);
    }
};

template <class Problem, class Schedule, class Shape>
class ThinGroup
{
    using T = typename Problem::Multiply;
    using Window = OutputWindow<MatrixRows>;
    using Sums = float[Shape::accumulators];
    using Pieces = ColumnPieces<Problem, Shape>;
    static constexpr int kSteps = Shape::steps;

public:
    // `map` is that of the rows, `staging` the whole block's.
    WPK_DEVICE ThinGroup(
        const ThinMemory<Shape>& memory, const TensorMap* map, unsigned char* staging, const Window& output)
        : memory_(memory), map_(map), staging_(staging), output_(output), tiles_(output.rowEnd), asked_(output.rowEnd)
    {
    }

    // All tiles of the block. All threads of the group call it, behind whatever waits for kernels in front.
    WPK_DEVICE void run()
    {
        WPK_UNROLL
        for (int stage = 0; stage < Shape::rowStages; ++stage)
            bringRows();
        memory_.awaitWeight();
        WPK_KEEP_LOOP
        for (; !tiles_.isDone(); tiles_.advance())
        {
            memory_.rows(group()).wait(rows_);
            if constexpr (Shape::ahead)
                runAhead();
            else
                runInStep();
        }
    }

private:
    static WPK_DEVICE int group()
    {
        return warpIndex() / Shape::kGroupWarps;
    }
    WPK_DEVICE SharedAddress rowTile() const
    {
        return memory_.rowTile(group(), rows_.stage);
    }
    WPK_DEVICE Window tile() const
    {
        return output_.at(tiles_.firstRow(), 0); // @tile_placed
    }

    // Asks for the rows of the next tile that has not been asked for, if there is one, as soon as there is room for
    // them; and for what its epilogue reads of these rows.
    WPK_DEVICE void bringRows()
    {
        if (asked_.isDone())
            return;
        const int thread = static_cast<int>(threadIdx.x) % Shape::groupThreads;
        const int row = asked_.firstRow() + group() * 64; // @rows_brought
        if (thread == 0)
        {
            const auto barriers = memory_.rows(group());
            barriers.acquire(asking_.stage, asking_.phase ^ 1, Shape::RowTile::copiedBytes);
            Shape::RowTile::copy(memory_.rowTile(group(), asking_.stage), map_, barriers.full(asking_.stage), row);
        }
        __syncwarp();
        prefetchTileRows<Problem, 64, kSteps * Shape::columns, Shape::groupThreads>(output_.at(row, 0), thread);
        asking_.advance();
        asked_.advance();
        if (asked_.isDone() && thread == 0)
            releaseIfEarly<Schedule>(); // all is asked for
    }

    // Nobody of this warp needs the tile's rows any more.
    WPK_DEVICE void releaseRows()
    {
        __syncwarp();                               // all lanes have looked at them
        memory_.rows(group()).release(rows_.stage); // @rows_released
        rows_.advance();
        bringRows();
    }

    WPK_DEVICE void multiply(Sums& sums, int step) const
    {
        fenceWgmma();
        const SharedAddress weight = memory_.weightTile(step); // @weight_of_step
        multiplyAlong<T, typename Shape::RowTile, typename Shape::WeightTile>(sums, rowTile(), weight);
        commitWgmma();
    }

    // What is asked for before sums are there, of a step's columns.
    struct Nothing
    {
    };
    using Loaded = Select<Shape::byColumns, typename Pieces::First, Nothing>;

    WPK_DEVICE Window columnsOf(int step) const
    {
        return tile().from(0, step * Shape::columns); // @columns_placed
    }

    // Waits for a step's sums, and stores them. InFlight: groups of products that go on meanwhile. Behind the last
    // step's products the rows are released.
    template <int InFlight, bool IsLast = false>
    WPK_DEVICE void finish(Sums& sums, int step)
    {
        const Window window = columnsOf(step);
        Loaded loaded;
        if constexpr (Shape::byColumns)
            loaded = Pieces::load(window);
        waitWgmma<InFlight>(sums); // @sums_awaited
        if constexpr (IsLast)
            releaseRows();
        if constexpr (Shape::byColumns)
        {
            Pieces::store(loaded, sums, scale_, staging_, window);
        }
        else
        {
            scale_.normalise(sums, window); // @sums_normalised
            NoResidual residual;
            storeTilesInLoop<Problem, Shape>(sums, staging_, window, residual, window.firstRow);
        }
    }

    // The products of the first step, and moments of the rows meanwhile.
    WPK_DEVICE void begin(Sums& sums)
    {
        multiply(sums, 0);
        scale_.take(rowTile(), tile());
    }

    // One step after the other.
    WPK_DEVICE void runInStep()
    {
        Sums sums;
        begin(sums);
        WPK_KEEP_LOOP
        for (int step = 0; step + 1 < kSteps; ++step)
        {
            finish<0>(sums, step);
            multiply(sums, step + 1);
        }
        finish<0, true>(sums, kSteps - 1);
    }

    // Each step's sums are stored while the products of the next one are under way, in two sets of sums in turns.
    WPK_DEVICE void runAhead()
    {
        Sums even, odd;
        begin(even);
        WPK_KEEP_LOOP
        for (int step = 0; step + 2 < kSteps; step += 2)
        {
            multiply(odd, step + 1);
            finish<1>(even, step);
            multiply(even, step + 2);
            finish<1>(odd, step + 1);
        }
        if constexpr (kSteps % 2 == 0)
        {
            multiply(odd, kSteps - 1);
            finish<1>(even, kSteps - 2);
            finish<0, true>(odd, kSteps - 1);
        }
        else
        {
            finish<0, true>(even, kSteps - 1);
        }
    }

    const ThinMemory<Shape>& memory_;
    const TensorMap* map_;
    unsigned char* staging_;
    Window output_;
    BlockTiles<Shape> tiles_, asked_;
    PipelineState<Shape::rowStages> rows_, asking_;
    ThinScale<Problem, Shape> scale_;
};

} // namespace wpk
