// One expression over a domain where some inputs are contiguous along another axis than y: square tiles of
// these inputs cross from one axis to the other through shared memory, so that both sides move whole lines.
//
// Problem: Y and plain operands over (leading, d1, d2, column, row), row being the axis along which y is
// contiguous; operands marked Crossing are contiguous along column and stand over (leading, d1, d2, row,
// column); Expression, isCopy and rowPadding as in elementwise.cuh.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

// Marks an operand that is contiguous along the column axis.
template <class T>
struct Crossing
{
};

namespace detail
{

struct TilePlace
{
    int leading, d1, d2, column, row;
};

// Operand I of a tile: read where it lies.
template <class Problem, class Schedule, class One, int I>
struct TileOperand
{
    using Type = typename One::Type;

    static constexpr int bytes = 0;

    static WPK_DEVICE void fill(const void*, const TilePlace&) {}

    // Elements (row .. row + V, column), relative to the tile.
    static WPK_DEVICE void read(
        const void* base, const TilePlace& at, int column, int row, int valid, Type (&values)[Schedule::vector])
    {
        const int64 offset = One::offset(at.leading, at.d1, at.d2, at.column + column, at.row + row);
        loadRow<One, Schedule::vector>(base, offset, valid, values);
    }
};

// A crossing operand: its tile is brought to shared memory by lines along column.
template <class Problem, class Schedule, class One, int I>
struct TileOperand<Problem, Schedule, Crossing<One>, I>
{
    using Type = typename One::Type;
    static constexpr int V = Schedule::vector, tile = Schedule::tile;
    // An odd number of words from row to row, so that reading down a column meets every bank.
    static constexpr int pitch = tile + maxOf(4, static_cast<int>(sizeof(Type))) / static_cast<int>(sizeof(Type));

    static constexpr int bytes = tile * pitch * static_cast<int>(sizeof(Type));

    static WPK_DEVICE Type* shared()
    {
        __shared__ Type elements[tile * pitch];
        return elements;
    }

    // A thread's loads go out in groups that a few registers hold.
    static WPK_DEVICE void fill(const void* base, const TilePlace& at)
    {
        constexpr int count = tile * tile / V / Schedule::threads, atOnce = minOf(count, 32 / V);
        Type* const elements = shared();
        for (int first = 0; first < count; first += atOnce)
        {
            Type values[atOnce][V];
            WPK_UNROLL
            for (int i = 0; i < atOnce; ++i)
            {
                const int t = static_cast<int>(threadIdx.x) + (first + i) * Schedule::threads;
                const int row = t / (tile / V), column = t % (tile / V) * V;
                const int left = Problem::column - at.column - column;
                const int valid = Problem::column % V == 0 && left > 0 ? V : minOf(V, left);
                if (first + i < count && at.row + row < Problem::row && valid > 0)
                    loadRow<One, V>(base, One::offset(at.leading, at.d1, at.d2, at.row + row, at.column + column),
                        valid, values[i]);
            }
            WPK_UNROLL
            for (int i = 0; i < atOnce; ++i)
            {
                const int t = static_cast<int>(threadIdx.x) + (first + i) * Schedule::threads;
                const int row = t / (tile / V), column = t % (tile / V) * V;
                WPK_UNROLL
                for (int v = 0; first + i < count && v < V; ++v)
                    store<Type, 1>(elements + row * pitch + column + v, {{values[i][v]}});
            }
        }
    }

    static WPK_DEVICE void read(const void*, const TilePlace&, int column, int row, int valid, Type (&values)[V])
    {
        const Type* const elements = shared();
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
        {
            values[v] = v < valid ? load<Type, 1>(elements + (row + v) * pitch + column)[0] : Type{};
        }
    }
};

template <class Problem, class Schedule, class List>
struct Tile;
template <class Problem, class Schedule, class... One>
struct Tile<Problem, Schedule, Tensors<One...>>
{
    static constexpr int bytes = (TileOperand<Problem, Schedule, One, 0>::bytes + ...);
    static constexpr int V = Schedule::vector;
    using Y = typename Problem::Y;
    using Number = NumberOf<typename Problem::Expression>;

    static WPK_DEVICE void fill(const void* const* inputs, const TilePlace& at)
    {
        fillFrom<0, One...>(inputs, at);
    }

    // Row elements (row .. row + V, column) of the result, as Y holds them.
    static WPK_DEVICE void compute(
        const void* const* inputs, const TilePlace& at, int column, int row, int valid, typename Y::Type (&result)[V])
    {
        if constexpr (Problem::isCopy)
        {
            copyFrom<One...>(inputs, at, column, row, valid, result);
        }
        else
        {
            Number operands[V][sizeof...(One)];
            readFrom<0, One...>(inputs, at, column, row, valid, operands);
            using Stored = Result<typename Y::Type, typename Problem::Expression>;
            Number numbers[V];
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                numbers[v] = Stored::number(Number(0), operands[v]);
            Stored::store(numbers, result);
        }
    }

private:
    template <int I, class First, class... Rest>
    static WPK_DEVICE void fillFrom(const void* const* inputs, const TilePlace& at)
    {
        TileOperand<Problem, Schedule, First, I>::fill(inputs[I], at);
        if constexpr (sizeof...(Rest) > 0)
            fillFrom<I + 1, Rest...>(inputs, at);
    }

    template <class Only>
    static WPK_DEVICE void copyFrom(
        const void* const* inputs, const TilePlace& at, int column, int row, int valid, typename Y::Type (&result)[V])
    {
        using Source = TileOperand<Problem, Schedule, Only, 0>;
        typename Source::Type values[V];
        Source::read(inputs[0], at, column, row, valid, values);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            result[v] = convertElement<typename Y::Type>(values[v]);
    }

    template <int I, class First, class... Rest>
    static WPK_DEVICE void readFrom(const void* const* inputs, const TilePlace& at, int column, int row, int valid,
        Number (&operands)[V][sizeof...(One)])
    {
        using Source = TileOperand<Problem, Schedule, First, I>;
        typename Source::Type values[V];
        Source::read(inputs[I], at, column, row, valid, values);
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            operands[v][I] = toNumber<Number>(values[v]);
        if constexpr (sizeof...(Rest) > 0)
            readFrom<I + 1, Rest...>(inputs, at, column, row, valid, operands);
    }
};

} // namespace detail

// A block writes one tile.
template <class Problem, class Schedule>
WPK_DEVICE void elementwiseTiled(Inputs<Problem::Operands::count> inputs, int, void* y)
{
    using Y = typename Problem::Y;
    constexpr int V = Schedule::vector, tile = Schedule::tile, rowRoom = Problem::row + Problem::rowPadding;
    using Place =
        Domain<Problem::wide, Problem::d1, Problem::d2, ceilDivide(Problem::column, tile), ceilDivide(rowRoom, tile)>;
    const Place block(blockIdx.x);
    const detail::TilePlace at{block.leading, block.at[0], block.at[1], block.at[2] * tile, block.at[3] * tile};
    using Operands = detail::Tile<Problem, Schedule, typename Problem::Operands>;
    waitIfEarly<Schedule>();       // @previous_awaited
    Operands::fill(inputs.at, at); // @tiles_filled
    releaseIfEarly<Schedule>();    // not before: tiles may take a good part of the shared memory
    __syncthreads();
    for (int t = static_cast<int>(threadIdx.x); t < tile * tile / V; t += Schedule::threads)
    {
        const int column = t / (tile / V), row = t % (tile / V) * V;
        const int room = minOf(V, rowRoom - at.row - row), valid = minOf(V, Problem::row - at.row - row);
        if (at.column + column >= Problem::column || room <= 0)
            continue;
        typename Y::Type result[V] = {};
        if (valid > 0)
            Operands::compute(inputs.at, at, column, row, valid, result);
        const int64 target = Y::offset(at.leading, at.d1, at.d2, at.column + column, at.row + row);
        storeRow<Y, V>(y, target, valid, room, result);
    }
}

} // namespace wpk
