// Softmax, log-softmax, layer norm and RMS norm of rows that lie across memory where they are read or written: the
// element's neighbour there belongs to the next row.
//
// The blocks of a cluster share a tile of `rows` neighbouring rows, and each has a part of their columns in shared
// memory, as the prologue's values. A tile is read along the axis that the inputs lie along, and written along y's, so
// that neighbouring lanes meet neighbouring elements both times. Statistics are a warp's, a row at a time; those of
// several blocks meet as in normalisation_cluster.cuh, row by row.
//
// Statistics are computed in the numbers of the epilogue (`NumberOf`), like all else.
//
// Problem: Inputs over (leading, o1, row, column) where readAlongColumns, else (leading, o1, column, row); Y and
// Operands likewise where writtenAlongColumns; kind; Prologue; Epilogue; epsilon as fp32 bits; rows, columns;
// readTogether, writtenTogether: elements of an access; padding: zeros that follow the axis along which y lies.
#pragma once

#include <wpk/kernels/barriers/cluster_copy.cuh>
#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/places/index.cuh>
#include <wpk/kernels/rows/norm_row.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// A block's part of a tile: where its elements lie in shared memory, beside what belongs to rows.
template <class Problem, class Schedule>
struct NormTile
{
    using Number = NumberOf<typename Problem::Epilogue>;
    static_assert(isSame<Number, NumberOf<typename Problem::Prologue>>, "all is computed in numbers of one type");
    static constexpr int rows = Schedule::rows, blocks = Schedule::blocks, threads = Schedule::threads;
    static constexpr int rowRoom = Problem::rows + (Problem::writtenAlongColumns ? 0 : Problem::padding);
    static constexpr int columnRoom = Problem::columns + (Problem::writtenAlongColumns ? Problem::padding : 0);
    static constexpr int unit = maxOf(Problem::readAlongColumns ? Problem::readTogether : 1,
        Problem::writtenAlongColumns ? Problem::writtenTogether : 1);
    static constexpr int share = ceilDivide(ceilDivide(columnRoom, blocks), unit) * unit; // columns of a block
    static constexpr int stride = share + 1 - share % 2; // odd: neither rows nor columns meet in a bank

    // Barriers; numbers of every block, of the first and of the second statistic; shift and scale; the elements.
    static constexpr int meetings = 2, placesAt = meetings * rows * 8 / static_cast<int>(sizeof(Number));
    static constexpr int scalesAt = placesAt + meetings * rows * blocks, elementsAt = scalesAt + 2 * rows;
    static_assert(Schedule::shared_bytes == (elementsAt + rows * stride) * static_cast<int>(sizeof(Number)),
        "Python and C++ count the same shared memory");

    Number* shared;
    int leading, o1, firstRow, rank;

    WPK_DEVICE int firstColumn() const
    {
        return rank * share;
    }
    WPK_DEVICE Number& element(int row, int column) const
    {
        return shared[elementsAt + row * stride + column];
    }
    WPK_DEVICE Number* scale(int row) const
    {
        return shared + scalesAt + 2 * row;
    }
    WPK_DEVICE SharedAddress barrierOf(int meeting, int row) const
    {
        return sharedAddress(shared) + (meeting * rows + row) * 8;
    }
    WPK_DEVICE Number* placesOf(int meeting, int row) const
    {
        return shared + placesAt + (meeting * rows + row) * blocks; // @meeting_places
    }

    // What comes is known from the beginning. Behind it stands waitCluster, before anything is sent.
    WPK_DEVICE void prepareMeetings() const
    {
        for (int each = static_cast<int>(threadIdx.x); each < meetings * rows; each += threads)
        {
            initBarrier(barrierOf(0, each), 1);
            fenceBarrierInit();
            arriveExpectBytes(barrierOf(0, each), blocks * static_cast<int>(sizeof(Number))); // @bytes_announced
        }
        arriveReadCluster(); // @meetings_told
    }

    // V elements of the tile, side by side along its columns or across its rows.
    template <bool AlongColumns, int V>
    struct Run
    {
        static constexpr int perLine = AlongColumns ? ceilDivide(share, V) : rows / V;
        static constexpr int count = AlongColumns ? rows * perLine : share * perLine;
        static constexpr int ofThread = ceilDivide(count, threads);
        static_assert(AlongColumns || rows % V == 0, "a vector lies within a tile");
        int row, column;

        explicit WPK_DEVICE Run(int index)
            : row(AlongColumns ? index / perLine : index % perLine * V),
              column(AlongColumns ? index % perLine * V : index / perLine)
        {
        }
        WPK_DEVICE Number& element(const NormTile& tile, int v) const
        {
            return AlongColumns ? tile.element(row, column + v) : tile.element(row + v, column);
        }
        // How many of them lie in so many rows and columns of the problem; none where zero or negative.
        WPK_DEVICE int within(const NormTile& tile, int rowEnd, int columnEnd) const
        {
            const int rowsLeft = rowEnd - tile.firstRow - row;
            const int columnsLeft = minOf(share, columnEnd - tile.firstColumn()) - column;
            if (AlongColumns)
                return rowsLeft > 0 ? minOf(V, columnsLeft) : 0;
            return columnsLeft > 0 ? minOf(V, rowsLeft) : 0;
        }
        // Where it begins along the two axes, the one that it lies along last.
        WPK_DEVICE int slow(const NormTile& tile) const
        {
            return AlongColumns ? tile.firstRow + row : tile.firstColumn() + column;
        }
        WPK_DEVICE int fast(const NormTile& tile) const
        {
            return AlongColumns ? tile.firstColumn() + column : tile.firstRow + row;
        }
    };

    // Loads of a thread's next runs go out together.
    template <class Item, class Operands, int Count>
    WPK_DEVICE void ask(Operands (&operands)[Count], const void* const* pointers, int first) const
    {
        WPK_UNROLL
        for (int j = 0; j < Count; ++j)
        {
            const Item item(first + j * threads);
            const int valid =
                first + j * threads < Item::count ? item.within(*this, Problem::rows, Problem::columns) : 0;
            if (valid > 0)
                operands[j].load(pointers, valid, leading, o1, item.slow(*this), item.fast(*this));
        }
    }

    // The prologue's values to shared memory.
    WPK_DEVICE void read(const void* const* inputs) const
    {
        constexpr int V = Problem::readTogether;
        using Item = Run<Problem::readAlongColumns, V>;
        using Operands = OperandRows<typename Problem::Inputs, V, Number>;
        constexpr int atOnce = minOf(Item::ofThread, maxOf(1, minOf(8, 64 / (V * maxOf(1, Operands::count)))));
        WPK_KEEP_LOOP
        for (int first = static_cast<int>(threadIdx.x); first < Item::count; first += atOnce * threads)
        {
            Operands operands[atOnce];
            ask<Item>(operands, inputs, first);
            WPK_UNROLL
            for (int j = 0; j < atOnce; ++j)
            {
                const Item item(first + j * threads);
                if (first + j * threads >= Item::count)
                    continue;
                const int valid = item.within(*this, Problem::rows, Problem::columns);
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                {
                    if (v < valid)
                        item.element(*this, v) = Problem::Prologue::evaluate(Number(0), operands[j].values[v]); // @kept
                }
            }
        }
    }

    // Normalised, with what follows, to y.
    WPK_DEVICE void write(const void* const* pointers, void* y) const
    {
        constexpr int V = Problem::writtenTogether;
        using Y = typename Problem::Y;
        using Item = Run<Problem::writtenAlongColumns, V>;
        using Operands = OperandRows<typename Problem::Operands, V, Number>;
        constexpr int atOnce = minOf(Item::ofThread, maxOf(1, minOf(4, 32 / (V * maxOf(1, Operands::count)))));
        WPK_KEEP_LOOP
        for (int first = static_cast<int>(threadIdx.x); first < Item::count; first += atOnce * threads)
        {
            Operands operands[atOnce];
            ask<Item>(operands, pointers, first);
            WPK_UNROLL
            for (int j = 0; j < atOnce; ++j)
            {
                const Item item(first + j * threads);
                const int room = first + j * threads < Item::count ? item.within(*this, rowRoom, columnRoom) : 0;
                if (room <= 0)
                    continue;
                const int valid = item.within(*this, Problem::rows, Problem::columns);
                Number values[V] = {};
                WPK_UNROLL
                for (int v = 0; v < V; ++v)
                {
                    if (v >= valid)
                        continue;
                    const Number* const scaled = scale(Problem::writtenAlongColumns ? item.row : item.row + v);
                    const NormScale<Number> norm{scaled[0], scaled[1]};
                    values[v] = Problem::Epilogue::evaluate(
                        norm.template applied<Problem::kind>(item.element(*this, v)), operands[j].values[v]);
                }
                storeRowOf<Y, V>(y, Y::offset(leading, o1, item.slow(*this), item.fast(*this)), valid, room, values);
            }
        }
    }
};

// A row of a tile as its warp sees it (norm_row.cuh).
template <class Problem, class Schedule>
struct AcrossRow
{
    using Tile = NormTile<Problem, Schedule>;
    using Number = typename Tile::Number;
    static constexpr int count = Problem::columns, blocks = Tile::blocks;
    const Tile& tile;
    int row;
    mutable int met = 0;

    // The sum or maximum over the row's elements of f(value), in every lane of the warps that have it.
    template <bool IsMaximum, class Function>
    WPK_DEVICE Number reduce(Function f) const
    {
        Number own = IsMaximum ? asFloat(0xff800000u) : 0.0f;
        const int end = minOf(Tile::share, Problem::columns - tile.firstColumn());
        for (int column = laneIndex(); column < end; column += kWarpSize)
        {
            const Number value = f(tile.element(row, column));
            own = IsMaximum ? largerNumber(own, value) : own + value; // @counted
        }
        own = IsMaximum ? warpMax<kWarpSize>(own) : warpSum<kWarpSize>(own);
        return blocks == 1 ? own : ofAllBlocks<IsMaximum>(own);
    }

private:
    // Every block's number, combined in the order of the blocks.
    template <bool IsMaximum>
    WPK_DEVICE Number ofAllBlocks(Number own) const
    {
        const int meeting = met++, lane = laneIndex();
        Number* const places = tile.placesOf(meeting, row);
        const SharedAddress barrier = tile.barrierOf(meeting, row);
        if (lane < blocks)
        {
            const Vector<Number, 1> sent{{own}};
            storeAsync(clusterAddress(sharedAddress(places + tile.rank), lane), sent, // @number_placed
                clusterAddress(barrier, lane));
        }
        waitBarrierOfCluster(barrier, 0); // @numbers_there
        Number result = places[0];
        WPK_UNROLL
        for (int block = 1; block < blocks; ++block)
            result = IsMaximum ? largerNumber(result, places[block]) : result + places[block];
        return result;
    }
};

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void normalisationAcross(Inputs<Problem::Inputs::count + Problem::Operands::count> inputs, int n, void* y)
{
    using Tile = detail::NormTile<Problem, Schedule>;
    using Number = typename Tile::Number;
    constexpr int blocks = Schedule::blocks, warps = Schedule::threads / kWarpSize;
    using Place = Domain<Problem::wide, Problem::o1, ceilDivide(Tile::rowRoom, Schedule::rows)>;
    WPK_SHARED(Number, shared);
    (void)n; // the grid has as many clusters
    releaseIfEarly<Schedule>();
    const Place at(static_cast<int64>(blockIdx.x) / blocks);
    const Tile tile{shared, at.leading, at.at[0], at.at[1] * Schedule::rows, blocks > 1 ? clusterRank() : 0};
    if constexpr (blocks > 1)
        tile.prepareMeetings();
    waitIfEarly<Schedule>(); // @previous_awaited
    tile.read(inputs.at);
    __syncthreads(); // @elements_there
    if constexpr (blocks > 1)
        waitCluster(); // @meetings_prepared
    for (int row = warpIndex(); row < Schedule::rows; row += warps)
    {
        if (tile.firstRow + row >= Problem::rows)
            break;
        const detail::AcrossRow<Problem, Schedule> own{tile, row};
        const detail::NormScale<Number> norm = detail::normScale<Problem>(own);
        if (laneIndex() == 0)
        {
            tile.scale(row)[0] = norm.shift;
            tile.scale(row)[1] = norm.scale;
        }
    }
    __syncthreads(); // @scales_there
    tile.write(inputs.at + Problem::Inputs::count, y);
}

} // namespace wpk
