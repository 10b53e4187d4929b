// What a unit hands to a template's function: the pointers of a launch, and lists of operands' types.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// The pointers that a launch passes for an operator's inputs, and addresses of the numbers that it passes by value.
template <int N>
struct Inputs
{
    const void* at[N > 0 ? N : 1];
};

// A list of tensors (tensor.cuh, or Strided of epilogue.cuh): the operands of an expression, in order.
template <class... Ts>
struct Tensors
{
    static constexpr int count = sizeof...(Ts);
};

} // namespace wpk
