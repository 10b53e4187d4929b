// Where the elements of a tile lie in global memory: operands of a matrix product as rows and columns,
// the columns running along the reduction.
//
// A source tells loaders, for a row and a column, the address and how many elements from there on along
// the columns exist (0 outside; the address is then any readable one). Rows and columns are turned into
// positions apart, because a thread loads few rows again and again.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// A matrix of Columns columns with any strides, in elements.
template <class T, int64 RowStride, int64 ColumnStride, int Columns>
struct MatrixSource
{
    using Type = T;
    struct Row
    {
        const T* begin;
        bool exists;
    };
    using Column = int;

    const T* data;
    int rows;

    WPK_DEVICE Row row(int index) const
    {
        const bool exists = index < rows;
        return {data + (exists ? index * RowStride : 0), exists};
    }
    static WPK_DEVICE Column column(int index)
    {
        return index;
    }
    static WPK_DEVICE void advance(Column& column, int by)
    {
        column += by;
    }

    // The number of elements, at most V, that lie one after the other from (row, column) on.
    template <int V>
    WPK_DEVICE int locate(const Row& row, Column column, const T*& address) const
    {
        static_assert(V == 1 || ColumnStride == 1, "vectors need contiguous columns");
        const bool exists = row.exists && column < Columns; // @end_of_row
        address = exists ? row.begin + column * ColumnStride : data;
        if constexpr (Columns % V == 0)
        {
            return exists ? V : 0;
        }
        else
        {
            return exists ? minOf(V, Columns - column) : 0;
        }
    }
};

// The input of a convolution: rows are output pixels (n, p, q), columns are (r, s, channel) with
// Problem::tap channels a filter tap, of which Problem::c exist.
template <class Problem>
struct PixelSource
{
    using T = typename Problem::X;
    using Type = T;
    using P = Problem;
    // Plain: the input position under the filter's first tap. Transposed: that position times the stride.
    struct Row
    {
        int64 image; // its first element
        int h, w;
    };
    struct Column
    {
        int r, s, c;
    };

    const T* x; // of the group's first channel
    int rows;

    WPK_DEVICE Row row(int index) const
    {
        if (index >= rows)
            return {0, kOutside, 0};
        const int image = index / (P::p * P::q), pixel = index % (P::p * P::q);
        const int p = pixel / P::q, q = pixel % P::q; // @pixel_of_row
        const int64 begin = image * static_cast<int64>(P::x_n);
        if constexpr (P::transposed)
            return {begin, p + P::pad_h, q + P::pad_w};
        return {begin, p * P::stride_h - P::pad_h, q * P::stride_w - P::pad_w};
    }

    static WPK_DEVICE Column column(int index)
    {
        const int tap = index / P::tap;
        return {tap / P::filter_w, tap % P::filter_w, index % P::tap};
    }

    static WPK_DEVICE void advance(Column& column, int by)
    {
        column.c += by;
        while (column.c >= P::tap)
        {
            column.c -= P::tap;
            if (++column.s == P::filter_w)
            {
                column.s = 0;
                ++column.r;
            }
        }
    }

    template <int V>
    WPK_DEVICE int locate(const Row& row, const Column& column, const T*& address) const
    {
        static_assert(V == 1 || (P::x_c == 1 && P::tap % V == 0), "vectors need contiguous channels and whole taps");
        int h = row.h, w = row.w;
        bool exists = column.r < P::filter_h;
        if constexpr (P::transposed)
        {
            h -= column.r * P::dilation_h;
            w -= column.s * P::dilation_w;
            exists = exists && h >= 0 && w >= 0 && h % P::stride_h == 0 && w % P::stride_w == 0;
            h /= P::stride_h;
            w /= P::stride_w;
            exists = exists && h < P::h && w < P::w;
        }
        else
        {
            h += column.r * P::dilation_h;
            w += column.s * P::dilation_w;
            exists = exists && static_cast<uint32>(h) < static_cast<uint32>(P::h)
                     && static_cast<uint32>(w) < static_cast<uint32>(P::w);
        }
        static_assert(
            P::x_h * P::h + P::x_w * P::w + P::x_c * P::tap < (int64(1) << 31), "an image fits 32-bit offsets");
        const int offset =
            h * static_cast<int>(P::x_h) + w * static_cast<int>(P::x_w) + column.c * static_cast<int>(P::x_c);
        address = x + (exists ? row.image + offset : 0);
        if constexpr (P::c % V == 0)
        {
            return exists ? V : 0;
        }
        else
        {
            return exists ? minOf(V, P::c - column.c) : 0;
        }
    }

private:
    static constexpr int kOutside = -(1 << 28); // no tap of a filter reaches from here into the image
};

} // namespace wpk
