// Sizes of a problem as types: known when the kernel is compiled, or given when it is launched.
//
// A kernel template takes a dimension as a type, Const<56> or Runtime, and makes it from the int that the
// launch passes: `const M m = dimension<M>(argument)`. Both convert to int; arithmetic with a Const
// folds, so one text serves both.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

template <int N>
struct Const
{
    static constexpr bool isConst = true;
    WPK_DEVICE constexpr operator int() const
    {
        return N;
    }
};

struct Runtime
{
    static constexpr bool isConst = false;
    int extent;
    WPK_DEVICE constexpr operator int() const
    {
        return extent;
    }
};

namespace detail
{

template <class Dim>
struct MakeDimension;
template <int N>
struct MakeDimension<Const<N>>
{
    static WPK_DEVICE constexpr Const<N> make(int)
    {
        return {};
    }
};
template <>
struct MakeDimension<Runtime>
{
    static WPK_DEVICE constexpr Runtime make(int launched)
    {
        return {launched};
    }
};

} // namespace detail

// The dimension of type Dim; `launched` is its value where Dim is Runtime and is ignored otherwise.
template <class Dim>
WPK_DEVICE constexpr Dim dimension(int launched)
{
    return detail::MakeDimension<Dim>::make(launched);
}

} // namespace wpk
