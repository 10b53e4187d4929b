// What an epilogue reads of a block's tile, asked for long before: constants in front of the wait for earlier kernels,
// all else behind it, while the first tiles of the product come. With cold weights a bias is a whole latency of DRAM at
// the end of every product; a residual is one of L2.
//
// In front of the wait nothing but prefetches to L2: they have no result, so nothing waits for them, and they stay
// where the wait may drop what lies in L1. Behind it loads, which alone bring a line to L1 for sure; they are waited
// for where the first tiles are waited for anyway. In the emulator both are loads, so that what they touch is checked.
#pragma once

#include <wpk/kernels/epilogue.cuh>
#include <wpk/kernels/prefetch.cuh>

namespace wpk
{

namespace detail
{

// The sectors of an operand under a tile of BlockM x BlockN. None of a single number, which a launch may pass by value,
// nor where columns lie apart.
template <class Tensor, int BlockM, int BlockN>
struct OperandSectors
{
    using T = typename Tensor::Type;
    static constexpr int kColumns = maxOf(1, kSectorBytes / static_cast<int>(sizeof(T)));
    static constexpr int kOfRow = Tensor::column == 0 ? 1 : ceilDivide(BlockN, kColumns);
    static constexpr bool isNone = Tensor::column > 1 || (Tensor::isPerColumn && Tensor::column == 0);
    static constexpr int kCount = isNone ? 0 : (Tensor::isPerColumn ? 1 : BlockM) * kOfRow;

    // An element of a sector; null where the tile has none there.
    template <class Rows>
    static WPK_DEVICE const T* at(const OutputWindow<Rows>& window, const void* tensor, int sector)
    {
        const int column = Tensor::column == 0 ? 0 : window.firstColumn + sector % kOfRow * kColumns;
        bool isRead = sector < kCount && column < window.columnEnd; // @sectors_end
        const T* at = static_cast<const T*>(tensor) + column * Tensor::column;
        if constexpr (!Tensor::isPerColumn)
        {
            const int row = window.firstRow + sector / kOfRow;
            isRead = isRead & isRowStored(window.rows, row, window.rowEnd); // @rows_end
            at += window.rows.template offset<Tensor>(row);
        }
        return isRead ? at : nullptr;
    }
};

} // namespace detail

// The operands of a tile of BlockM x BlockN, asked for by Threads threads. Problem::operand_constants has a bit for
// each operand that no kernel writes. SumsParts: only the last block of a tile stores it (split_k.cuh).
template <class Problem, class Rows, int BlockM, int BlockN, int Threads, bool SumsParts = false>
class OperandPrefetch
{
    using List = typename Problem::Operands;
    static constexpr int kMost = 8; // sectors of an operand that a thread asks for; of larger tiles none
    template <class Tensor>
    using Sectors = detail::OperandSectors<Tensor, BlockM, BlockN>;
    template <class Tensor>
    static constexpr int count =
        ceilDivide(Sectors<Tensor>::kCount, Threads) <= kMost ? ceilDivide(Sectors<Tensor>::kCount, Threads) : 0;
    template <class... Ts>
    static WPK_DEVICE constexpr int counted(Tensors<Ts...>)
    {
        return (count<Ts> + ... + 0);
    }

public:
    WPK_DEVICE OperandPrefetch(const OutputWindow<Rows>& window, int thread) : window_(window), thread_(thread) {}

    // In front of the wait.
    WPK_DEVICE void constants() const
    {
        forConstants<0>(List{});
    }

    // Behind the wait, when the first tiles have been asked for.
    WPK_DEVICE void behindFirstTiles() const
    {
        if constexpr (!SumsParts)
            Loaded(*this).finish();
    }

    // What is under way, from here until finish().
    class Loaded
    {
    public:
        explicit WPK_DEVICE Loaded(const OperandPrefetch& prefetch)
        {
            load<0, 0>(prefetch, List{});
        }
        WPK_DEVICE void finish() const
        {
            if constexpr (kTouched > 0)
            {
                uint32 words = 0;
                WPK_UNROLL
                for (int i = 0; i < kTouched; ++i)
                    words ^= words_[i];
                awaitTouched(words);
            }
        }

    private:
        template <int I, int Before>
        WPK_DEVICE void load(const OperandPrefetch&, Tensors<>)
        {
        }
        template <int I, int Before, class Tensor, class... Others>
        WPK_DEVICE void load(const OperandPrefetch& prefetch, Tensors<Tensor, Others...>)
        {
            WPK_UNROLL
            for (int i = 0; i < count<Tensor>; ++i)
                words_[Before + i] = touch(prefetch.template at<Tensor>(I, i));
            load<I + 1, Before + count<Tensor>>(prefetch, Tensors<Others...>{});
        }

        static constexpr int kTouched = counted(List{});
        uint32 words_[maxOf(kTouched, 1)];
    };

private:
    template <class Tensor>
    WPK_DEVICE const typename Tensor::Type* at(int operand, int i) const
    {
        return Sectors<Tensor>::at(window_, window_.operands[operand], thread_ + i * Threads);
    }

    template <int I>
    WPK_DEVICE void forConstants(Tensors<>) const
    {
    }
    template <int I, class Tensor, class... Others>
    WPK_DEVICE void forConstants(Tensors<Tensor, Others...>) const
    {
        if constexpr ((Problem::operand_constants >> I & 1) != 0) // @constants_only
        {
            WPK_UNROLL
            for (int i = 0; i < count<Tensor>; ++i)
                prefetchConstant(at<Tensor>(I, i));
        }
        forConstants<I + 1>(Tensors<Others...>{});
    }

    OutputWindow<Rows> window_;
    int thread_;
};

// Of a block whose Shape names blockM and blockN.
template <class Problem, class Shape, int Threads, bool SumsParts = false, class Rows>
WPK_DEVICE OperandPrefetch<Problem, Rows, Shape::blockM, Shape::blockN, Threads, SumsParts> prefetchOf(
    const OutputWindow<Rows>& window)
{
    return {window, static_cast<int>(threadIdx.x)};
}

} // namespace wpk
