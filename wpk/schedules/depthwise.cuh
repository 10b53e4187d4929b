// Depthwise convolution, plain or transposed, in fp32; a thread computes V neighbouring channels of a tile of outputs.
// It walks down the input rows under its tile: a row is loaded once for all outputs of the tile, some rows ahead of
// its products, and an output row is stored as soon as its last input row has been added.
//
// Problem: X over (n, h, w, c); Y and Operands over (n, p, q, k); Weight over (r, s, k), packed; Epilogue;
// sizes as in wpk/problems/convolution.py. Output channel k reads input channel k / multiplier.
// paddingC, paddingQ: zeros that follow y's last channel or column.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/epilogue/constant_prefetch.cuh>
#include <wpk/kernels/simt/depthwise_tile.cuh>

namespace wpk
{

namespace detail
{

// Input row that filter row r of output row p reads, or -1 where it lies outside.
template <class Problem>
WPK_DEVICE int inputRow(int p, int r)
{
    int h;
    if constexpr (Problem::transposed)
    {
        const int reach = p + Problem::padTop - r * Problem::dilationH;
        h = reach >= 0 && reach % Problem::strideH == 0 ? reach / Problem::strideH : -1;
    }
    else
    {
        h = p * Problem::strideH - Problem::padTop + r * Problem::dilationH;
    }
    return h < Problem::h ? h : -1;
}

// Sums of one output row, filter row by filter row. `weights` holds the filter's first row.
template <class Problem, class Tile>
WPK_DEVICE void convolveRow(const void* x, const void* weight, int n, int p, int q, int k, int valid,
    typename Tile::Weights (&weights)[1][Problem::filterW], typename Tile::Sums (&sums)[1])
{
    using OneRow = WindowAxis<1, 1, 1, 1, 1, 1, 0>;
    constexpr int span = Tile::Columns::span;
    constexpr int count = minOf(span, maxOf(1, 32 / Tile::Inputs::count)); // columns that are held at once
    for (int r = 0; r < Problem::filterH; ++r)
    {
        const int h = inputRow<Problem>(p, r);
        if (h < 0)
            continue;
        if (r > 0)
            loadFilterRow<Problem, Tile>(weight, r, k, valid, weights[0]);
        if constexpr (Problem::transposed)
        {
            addTransposedRow<Problem, Tile>(x, n, h, q, k, valid, weights[0], sums[0]);
        }
        else
        {
            WPK_UNROLL
            for (int first = 0; first < span; first += count)
            {
                typename Tile::Inputs values[count];
                loadColumns<Problem, Tile>(x, n, h, true, q, first, k, valid, values);
                addColumns<OneRow, Tile>(values, first, 0, weights, sums);
            }
        }
    }
}

// Asks for the filter from row Begin on, which the grid's threads share.
template <class Problem, int Begin, int Threads>
WPK_DEVICE void prefetchFilter(const void* weight)
{
    using Weight = typename Problem::Weight;
    constexpr int kElements = kSectorBytes / static_cast<int>(sizeof(typename Weight::Type));
    constexpr int kBegin = static_cast<int>(Weight::offset(Begin, 0, 0));
    constexpr int kEnd = static_cast<int>(Weight::offset(Problem::filterH, 0, 0)); // @filter_end
    const typename Weight::Type* const filter = static_cast<const typename Weight::Type*>(weight);
    const int thread = static_cast<int>(blockIdx.x) * Threads + static_cast<int>(threadIdx.x);
    WPK_KEEP_LOOP
    for (int at = kBegin + thread * kElements; at < kEnd; at += static_cast<int>(gridDim.x) * (Threads * kElements))
        prefetchConstant(filter + at);
}

// Whether an operand is the same at all pixels of an image, as biases are.
template <class T>
inline constexpr bool isOfImage = false;
template <class T, int Alignment, int64 N, int64 K>
inline constexpr bool isOfImage<Tensor<T, Alignment, N, 0, 0, K>> = true;

// The epilogue's operands of V channels: those of the image are loaded once for all pixels.
template <class List, int V>
struct PixelOperands;
template <class... T, int V>
struct PixelOperands<Tensors<T...>, V>
{
    float values[V][sizeof...(T) > 0 ? sizeof...(T) : 1];

    // Loads the operands that are (not) of the image.
    template <bool OfImage>
    WPK_DEVICE void load(const void* const* pointers, int valid, int n, int p, int q, int k)
    {
        int operand = 0;
        (loadOne<T, OfImage>(pointers[operand], valid, operand, n, p, q, k), ..., void());
    }

private:
    template <class One, bool OfImage>
    WPK_DEVICE void loadOne(const void* pointer, int valid, int& operand, int n, int p, int q, int k)
    {
        if constexpr (isOfImage<One> == OfImage)
        {
            float row[V];
            loadRowAs<One, V>(pointer, One::offset(n, p, q, k), valid, row);
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                values[v][operand] = row[v];
        }
        ++operand;
    }
};

// The end of a thread's outputs: epilogue and store, row by row.
template <class Problem, class Tile>
struct DepthwiseEnd
{
    using Y = typename Problem::Y;
    static constexpr int V = Tile::V;
    using Operands = PixelOperands<typename Problem::Operands, V>;
    const void* const* pointers;
    void* y;
    int n, p, q;
    typename Tile::Part part;
    Operands ofImage;

    // Asks for what no kernel writes, of one pixel: mostly it is the same at all. Threads without channels ask for the
    // first ones, without a branch.
    WPK_DEVICE void prefetch() const
    {
        const int start = part.valid > 0 ? part.start : 0;
        prefetchConstants<Problem::operand_constants>(typename Problem::Operands{}, pointers, n, p, q, start);
    }

    WPK_DEVICE void begin()
    {
        if (part.valid > 0)
            ofImage.template load<true>(pointers, part.valid, n, 0, 0, part.start);
    }

    // Loads what is the pixels' own. Where a pixel is none, its neighbour's, which is not used.
    WPK_DEVICE void load(int row, Operands (&operands)[Tile::pixels])
    {
        WPK_UNROLL
        for (int pixel = 0; pixel < Tile::pixels; ++pixel)
        {
            operands[pixel] = ofImage;
            if (part.valid > 0)
                // @pixel_operands
                operands[pixel].template load<false>(pointers, part.valid, n, minOf(p + row, Problem::p - 1),
                    minOf(q + pixel, Problem::q - 1), part.start);
        }
    }

    // Stores the tile's row `row` of these sums.
    WPK_DEVICE void store(int row, typename Tile::Sums& sums, const Operands (&operands)[Tile::pixels])
    {
        if (!Tile::Rows::isOutput(p, row))
            return;
        WPK_UNROLL
        for (int pixel = 0; pixel < Tile::pixels; ++pixel)
        {
            if (!Tile::Columns::isOutput(q, pixel))
                continue;
            const int valid = Problem::paddingQ == 0 || q + pixel < Problem::q ? part.valid : 0;
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
                sums[pixel][v] = Problem::Epilogue::evaluate(sums[pixel][v], operands[pixel].values[v]);
            const int64 target = Y::offset(n, p + row, q + pixel, part.start);
            storeRowOf<Y, V>(y, target, valid, part.room, sums[pixel]);
        }
    }
};

// The whole tile where the filter is held: rows are loaded `ahead` of their products.
template <class Problem, class Tile>
WPK_DEVICE void convolveTile(const void* x, const typename Tile::Weights (&weights)[Problem::filterH][Problem::filterW],
    DepthwiseEnd<Problem, Tile>& end)
{
    using Rows = typename Tile::Rows;
    constexpr int span = Tile::Columns::span, slots = Tile::ahead + 1;
    typename Tile::Inputs inputs[slots][span];
    typename Tile::Sums sums[Tile::rows] = {};
    WPK_UNROLL
    for (int step = -Tile::ahead; step < Rows::span; ++step)
    {
        const int next = step + Tile::ahead;
        if (next < Rows::span && Rows::isUsed(next))
            // @row_loaded
            loadColumns<Problem, Tile>(x, end.n, Rows::input(end.p, next), Rows::isInside(end.p, next), end.q, 0,
                end.part.start, end.part.valid, inputs[next % slots]);
        if (step < 0 || !Rows::isUsed(step))
            continue;
        // @row_completed: of the row that this step completes
        const int done = step - (Problem::filterH - 1) * Problem::dilationH;
        const bool completes = done >= 0 && done % Problem::strideH == 0;
        typename DepthwiseEnd<Problem, Tile>::Operands operands[Tile::pixels];
        if (completes)
            end.load(done / Problem::strideH, operands);
        addColumns<Rows, Tile>(inputs[step % slots], 0, step, weights, sums);
        if (completes)
            end.store(done / Problem::strideH, sums[done / Problem::strideH], operands);
    }
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void depthwise(Inputs<2 + Problem::Operands::count> inputs, int n, void* y)
{
    using Tile = detail::DepthwiseTile<Problem, Schedule>;
    static_assert(Tile::rows == 1 || Tile::isHeld, "a tile of several rows holds the filter and its sums");
    const int64 item = firstItem<Schedule::threads>();
    const bool inside = item < Tile::Place::items(n);
    const typename Tile::Place place(inside ? item : 0);
    const typename Tile::Part part(place.chunk);
    detail::DepthwiseEnd<Problem, Tile> end{
        inputs.at + 2, y, place.n, place.p * Tile::rows, place.q * Tile::pixels, part, {}};
    const bool computes = (Problem::paddingC == 0 || part.valid > 0) && (Problem::paddingQ == 0 || end.q < Problem::q);
    typename Tile::Weights weights[Tile::weightRows][Problem::filterW] = {};
    releaseIfEarly<Schedule>();
    // Of several rows registers are for their sums.
    if constexpr (Schedule::rows == 1)
    {
        detail::prefetchFilter<Problem, Tile::weightRows, Schedule::threads>(inputs.at[1]);
        if (computes)
            end.prefetch();
    }
    WPK_UNROLL
    for (int r = 0; r < Tile::weightRows; ++r)
    {
        if (computes)
            // @weights_loaded
            detail::loadFilterRow<Problem, Tile>(inputs.at[1], r, part.start, part.valid, weights[r]);
    }
    waitIfEarly<Schedule>(); // @previous_awaited: weights are constants: they may be asked for before
    if (!inside)
        return;
    end.begin();
    if constexpr (Tile::isHeld)
    {
        detail::convolveTile<Problem, Tile>(inputs.at[0], weights, end);
    }
    else
    {
        typename Tile::Sums sums[1] = {};
        typename detail::DepthwiseEnd<Problem, Tile>::Operands operands[Tile::pixels];
        end.load(0, operands);
        if (computes)
            detail::convolveRow<Problem, Tile>(
                inputs.at[0], inputs.at[1], place.n, end.p, end.q, part.start, part.valid, weights, sums);
        end.store(0, sums[0], operands);
    }
}

} // namespace wpk
