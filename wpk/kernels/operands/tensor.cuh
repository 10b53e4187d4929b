// Tensors as kernels address them: an element type, strides known at compile time, rows of elements moved
// with the widest accesses that their alignment allows.
//
// A "row" is V elements along the tensor's last axis. Strides stand in the kernel's own order of axes,
// the run-time (leading) axis first; a stride of 0 broadcasts.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/numbers/expression.cuh>
#include <wpk/kernels/operands/operands.cuh>

namespace wpk
{

namespace detail
{

template <int64... Strides>
struct LastOf;
template <int64 Only>
struct LastOf<Only>
{
    static constexpr int64 last = Only;
};
template <int64 First, int64... Rest>
struct LastOf<First, Rest...>
{
    static constexpr int64 last = LastOf<Rest...>::last;
};

} // namespace detail

// Alignment: bytes that the address and all strides but the last are multiples of, when the last is 1.
template <class T, int Alignment, int64 Leading, int64... Rest>
struct Tensor
{
    using Type = T;
    static constexpr int64 rowStride = detail::LastOf<Leading, Rest...>::last;
    static constexpr bool isNumber = Leading == 0 && ((Rest == 0) && ...); // the same everywhere

    // Elements from the start of the tensor. Only the leading axis may need 64 bits: templates refuse
    // tensors with 2^31 or more elements at one leading index.
    template <class... Index>
    static WPK_DEVICE constexpr int64 offset(int leading, Index... rest)
    {
        return leading * Leading + ((static_cast<int32>(rest) * static_cast<int32>(Rest)) + ... + 0);
    }

    // Whether this is the first of all positions that have the same element.
    template <class... Index>
    static WPK_DEVICE constexpr bool isFirstOfSame(int leading, Index... rest)
    {
        return (Leading != 0 || leading == 0) && ((Rest != 0 || rest == 0) && ... && true);
    }

    // Elements that one access of a row of V moves.
    template <int V>
    static WPK_DEVICE constexpr int accessWidth()
    {
        if (rowStride != 1)
            return 1;
        return minOf(V, maxOf(1, minOf(Alignment, 16) / static_cast<int>(sizeof(T))));
    }
};

// An element in another type: unchanged where the types agree, as C++ does between integers (a conversion
// to bool is `value != 0`), else through float, or through double where one of them is that.
template <class To, class From>
WPK_DEVICE To convertElement(From value)
{
    if constexpr (isSame<To, From>)
    {
        return value;
    }
    else if constexpr (isInteger<To> && isInteger<From>)
    {
        return static_cast<To>(value);
    }
    else if constexpr (isSame<To, double> || isSame<From, double>)
    {
        return fromDouble<To>(toNumber<double>(value));
    }
    else
    {
        return fromFloat<To>(toFloat(value));
    }
}

// values[i] = element i of the row at `offset`, for i < valid; all bits zero for the others. valid >= 1.
template <class TensorType, int V>
WPK_DEVICE void loadRow(const void* base, int64 offset, int valid, typename TensorType::Type (&values)[V])
{
    using T = typename TensorType::Type;
    constexpr int width = TensorType::template accessWidth<V>();
    const T* const source = static_cast<const T*>(base) + offset;
    if constexpr (TensorType::rowStride == 0)
    {
        const T value = load<T, 1>(source)[0];
        WPK_UNROLL
        for (int i = 0; i < V; ++i)
            values[i] = value;
    }
    else
    {
        if (width > 1 && valid >= V)
        {
            WPK_UNROLL
            for (int i = 0; i < V; i += width)
            {
                const Vector<T, width> chunk = load<T, width>(source + i);
                WPK_UNROLL
                for (int j = 0; j < width; ++j)
                    values[i + j] = chunk[j];
            }
        }
        else
        {
            WPK_UNROLL
            for (int i = 0; i < V; ++i)
            {
                values[i] = i < valid ? load<T, 1>(source + i * TensorType::rowStride)[0] : T{};
            }
        }
    }
}

// The same, as numbers to compute with.
template <class TensorType, int V, class Number>
WPK_DEVICE void loadRowAs(const void* base, int64 offset, int valid, Number (&values)[V])
{
    typename TensorType::Type row[V];
    loadRow<TensorType, V>(base, offset, valid, row);
    WPK_UNROLL
    for (int i = 0; i < V; ++i)
        values[i] = toNumber<Number>(row[i]);
}

// Writes elements i < room of the row at `offset`: values[i] where i < valid, zeros (the padding) after.
template <class TensorType, int V>
WPK_DEVICE void storeRow(void* base, int64 offset, int valid, int room, const typename TensorType::Type (&values)[V])
{
    using T = typename TensorType::Type;
    constexpr int width = TensorType::template accessWidth<V>();
    T* const target = static_cast<T*>(base) + offset;
    if (width > 1 && room >= V)
    {
        WPK_UNROLL
        for (int i = 0; i < V; i += width)
        {
            Vector<T, width> chunk;
            WPK_UNROLL
            for (int j = 0; j < width; ++j)
                chunk[j] = i + j < valid ? values[i + j] : T{};
            store<T, width>(target + i, chunk);
        }
    }
    else
    {
        WPK_UNROLL
        for (int i = 0; i < V; ++i)
        {
            const Vector<T, 1> one{{i < valid ? values[i] : T{}}};
            if (i < room)
                store<T, 1>(target + i * TensorType::rowStride, one);
        }
    }
}

// The same, from the numbers that they were computed in.
template <class TensorType, int V, class Number>
WPK_DEVICE void storeRowOf(void* base, int64 offset, int valid, int room, const Number (&values)[V])
{
    typename TensorType::Type row[V];
    WPK_UNROLL
    for (int i = 0; i < V; ++i)
        row[i] = fromNumber<typename TensorType::Type>(values[i]);
    storeRow<TensorType, V>(base, offset, valid, room, row);
}

// The operands of an expression for one row: values[i][operand].
template <class List, int V, class Number = float>
struct OperandRows;
template <class... T, int V, class Number>
struct OperandRows<Tensors<T...>, V, Number>
{
    static constexpr int count = sizeof...(T);
    Number values[V][count > 0 ? count : 1];

    // Loads every operand's row at this position of the domain; pointers[i] belongs to operand i.
    template <class... Index>
    WPK_DEVICE void load(const void* const* pointers, int valid, Index... position)
    {
        int operand = 0;
        (loadOne<T>(pointers[operand], valid, operand, position...), ..., void());
    }

private:
    template <class One, class... Index>
    WPK_DEVICE void loadOne(const void* pointer, int valid, int& operand, Index... position)
    {
        Number row[V];
        loadRowAs<One, V>(pointer, One::offset(position...), valid, row);
        WPK_UNROLL
        for (int i = 0; i < V; ++i)
            values[i][operand] = row[i];
        ++operand;
    }
};

// row[i] = Expression(row[i], operands at this position), the usual end of a kernel.
template <class Expression, class List, int V, class Number, class... Index>
WPK_DEVICE void applyToRow(Number (&row)[V], const void* const* pointers, int valid, Index... position)
{
    OperandRows<List, V, Number> operands;
    operands.load(pointers, valid, position...);
    WPK_UNROLL
    for (int i = 0; i < V; ++i)
        row[i] = Expression::evaluate(row[i], operands.values[i]);
}

} // namespace wpk
