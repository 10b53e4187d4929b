// What no kernel writes, of an expression's operands, asked for before the kernels in front have ended (prefetch.cuh):
// each thread asks for what it will read itself.
#pragma once

#include <wpk/kernels/prefetch.cuh>
#include <wpk/kernels/tensor.cuh>

namespace wpk
{

// Of each operand that has a bit in Constants, the row at this position of the domain; pointers[i] belongs to operand
// i. Not of single numbers, which a launch may pass by value.
template <int Constants, class... Index>
WPK_DEVICE void prefetchConstants(Tensors<>, const void* const*, Index...)
{
}
template <int Constants, class One, class... Others, class... Index>
WPK_DEVICE void prefetchConstants(Tensors<One, Others...>, const void* const* pointers, Index... position)
{
    if constexpr ((Constants & 1) != 0 && !One::isNumber) // @row_constants_only
        prefetchConstant(static_cast<const typename One::Type*>(pointers[0]) + One::offset(position...));
    prefetchConstants<(Constants >> 1)>(Tensors<Others...>{}, pointers + 1, position...);
}

} // namespace wpk
