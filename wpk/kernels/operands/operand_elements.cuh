// One element of each operand, as it lies in memory. It becomes a number where it is used: where it is loaded, threads
// would wait for it.
#pragma once

#include <wpk/kernels/operands/tensor.cuh>

namespace wpk
{

template <class List>
struct OperandElements;

template <>
struct OperandElements<Tensors<>>
{
    template <class... Index>
    WPK_DEVICE void load(const void* const*, Index...)
    {
    }
    WPK_DEVICE void widen(float*) const {}
};

template <class Tensor, class... Others>
struct OperandElements<Tensors<Tensor, Others...>>
{
    using T = typename Tensor::Type;

    // pointers[i] belongs to operand i.
    template <class... Index>
    WPK_DEVICE void load(const void* const* pointers, Index... position)
    {
        first = wpk::load<T, 1>(static_cast<const T*>(pointers[0]) + Tensor::offset(position...))[0];
        others.load(pointers + 1, position...);
    }

    WPK_DEVICE void widen(float* numbers) const
    {
        numbers[0] = toNumber<float>(first);
        others.widen(numbers + 1);
    }

    T first;
    OperandElements<Tensors<Others...>> others;
};

// Expression(value, these elements).
template <class Expression, class... Ts>
WPK_DEVICE float evaluateWith(float value, const OperandElements<Tensors<Ts...>>& elements)
{
    float numbers[sizeof...(Ts) > 0 ? sizeof...(Ts) : 1] = {};
    elements.widen(numbers);
    return Expression::evaluate(value, numbers);
}

} // namespace wpk
