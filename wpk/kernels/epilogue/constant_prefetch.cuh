// What no kernel writes, of an epilogue's or an expression's operands, asked for before the kernels in front have
// ended: with cold weights a bias is a whole latency of DRAM at the end of every product. And what differs from row to
// row, asked for in front of the products of these rows.
#pragma once

#include <wpk/kernels/copies/prefetch.cuh>
#include <wpk/kernels/epilogue/output_window.cuh>
#include <wpk/kernels/operands/tensor.cuh>

namespace wpk
{

// Of each operand that has a bit in Constants, the row at this position of the domain; pointers[i] belongs to operand
// i. Each thread asks for what it will read itself and nobody in front of it does: what all rows share is a few
// sectors, and a grid that asks for them once a row waits for the slices of L2 that have them. Not for single numbers,
// which a launch may pass by value.
template <int Constants, class... Index>
WPK_DEVICE void prefetchConstants(Tensors<>, const void* const*, Index...)
{
}
template <int Constants, class One, class... Others, class... Index>
WPK_DEVICE void prefetchConstants(Tensors<One, Others...>, const void* const* pointers, Index... position)
{
    if constexpr ((Constants & 1) != 0 && !One::isNumber) // @row_constants_only
    {
        const auto* const row = static_cast<const typename One::Type*>(pointers[0]) + One::offset(position...);
        prefetchConstant(One::isFirstOfSame(position...) ? row : nullptr);
    }
    prefetchConstants<(Constants >> 1)>(Tensors<Others...>{}, pointers + 1, position...);
}

namespace detail
{

// The sectors of an operand under a tile of BlockM x BlockN. None of a single number, which a launch may pass by value,
// nor where columns lie apart, nor of what tensor copies bring.
template <class Tensor, int BlockM, int BlockN>
struct TileSectors
{
    static constexpr int kColumns = maxOf(1, kSectorBytes / static_cast<int>(sizeof(typename Tensor::Type)));
    static constexpr int kOfRow = Tensor::column == 0 ? 1 : ceilDivide(BlockN, kColumns);
    static constexpr bool isNone = Tensor::column > 1 || (Tensor::isPerColumn && Tensor::column == 0)
                                   || Tensor::inShared;
    static constexpr int kCount = isNone ? 0 : (Tensor::isPerColumn ? 1 : BlockM) * kOfRow;

    // An element of a sector; null where the tile has none there.
    template <class Rows>
    static WPK_DEVICE const typename Tensor::Type* at(const OutputWindow<Rows>& window, const void* tensor, int sector)
    {
        const int column = Tensor::column == 0 ? 0 : window.firstColumn + sector % kOfRow * kColumns;
        bool isRead = sector < kCount && column < window.columnEnd; // @sectors_end
        const auto* at = static_cast<const typename Tensor::Type*>(tensor) + column * Tensor::column;
        if constexpr (!Tensor::isPerColumn)
        {
            const int row = window.firstRow + sector / kOfRow;
            isRead = isRead & isRowStored(window.rows, row, window.rowEnd); // @rows_end
            at += window.rows.template offset<Tensor>(row);
        }
        return isRead ? at : nullptr;
    }
};

template <int Constants, int BlockM, int BlockN, int Threads, class Rows>
WPK_DEVICE void prefetchTile(Tensors<>, const void* const*, const OutputWindow<Rows>&, int)
{
}
template <int Constants, int BlockM, int BlockN, int Threads, class Rows, class One, class... Others>
WPK_DEVICE void prefetchTile(
    Tensors<One, Others...>, const void* const* pointers, const OutputWindow<Rows>& window, int thread)
{
    using Sectors = TileSectors<One, BlockM, BlockN>;
    constexpr int kMost = 8, kCount = ceilDivide(Sectors::kCount, Threads); // more would hold up the product's tiles
    if constexpr ((Constants & 1) != 0 && kCount <= kMost)                  // @constants_only
    {
        WPK_UNROLL
        for (int i = 0; i < kCount; ++i)
            prefetchConstant(Sectors::at(window, pointers[0], thread + i * Threads));
    }
    prefetchTile<(Constants >> 1), BlockM, BlockN, Threads>(Tensors<Others...>{}, pointers + 1, window, thread);
}

// A bit for each operand that differs from row to row.
template <class... Operands>
WPK_DEVICE constexpr int rowOperands(Tensors<Operands...>)
{
    int bits = 0, bit = 1;
    ((bits |= Operands::isPerColumn ? 0 : bit, bit *= 2), ...);
    return bits;
}

} // namespace detail

// The constants that the epilogue of a tile of BlockM x BlockN at `window` reads, asked for by Threads threads.
// Problem::operand_constants has a bit for each operand that no kernel writes.
template <class Problem, int BlockM, int BlockN, int Threads, class Rows>
WPK_DEVICE void prefetchTileConstants(const OutputWindow<Rows>& window, int thread = static_cast<int>(threadIdx.x))
{
    detail::prefetchTile<Problem::operand_constants, BlockM, BlockN, Threads>(
        typename Problem::Operands{}, window.operands, window, thread);
}

// The same of operands that differ from row to row, whoever writes them: behind whatever waits for kernels in front.
template <class Problem, int BlockM, int BlockN, int Threads, class Rows>
WPK_DEVICE void prefetchTileRows(const OutputWindow<Rows>& window, int thread)
{
    using Operands = typename Problem::Operands;
    detail::prefetchTile<detail::rowOperands(Operands{}), BlockM, BlockN, Threads>(
        Operands{}, window.operands, window, thread);
}

} // namespace wpk
