// The order of elements by value and, among equals, by index.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/numbers/scalar.cuh>

namespace wpk
{

// Integers in the order of a type's numbers: the same for equal ones (zeros of both signs, all NaN), NaN the largest.
template <class T>
WPK_DEVICE auto rankingKey(T value)
{
    if constexpr (isSame<T, int64>)
    {
        return value;
    }
    else if constexpr (isSame<T, float> || isSame<T, Half> || isSame<T, Bfloat16>)
    {
        const float number = toFloat(value);
        const int32 bits = static_cast<int32>(number == 0.0f ? 0u : asUint32(number));
        return isNan(number) ? 0x7fffffff : bits < 0 ? bits ^ 0x7fffffff : bits;
    }
    else if constexpr (isSame<T, double>)
    {
        const int64 bits = static_cast<int64>(value == 0.0 ? 0u : asUint64(value));
        return isNan(value) ? int64(0x7fffffffffffffffll) : bits < 0 ? bits ^ 0x7fffffffffffffffll : bits;
    }
    else if constexpr (isSame<T, uint64>)
    {
        return static_cast<int64>(value ^ (uint64(1) << 63));
    }
    else if constexpr (isSame<T, uint32>)
    {
        return static_cast<int64>(value);
    }
    else
    {
        return static_cast<int32>(value);
    }
}

// An element of a row: what decides where it stands, the one with the least key first, then that with the least index.
template <class Key>
struct Ranked
{
    Key key;
    int index;

    WPK_DEVICE bool isBefore(const Ranked& other) const
    {
        return key < other.key || (key == other.key && index < other.index);
    }

    // What stands behind every element.
    static WPK_DEVICE Ranked behindAll()
    {
        return {static_cast<Key>(sizeof(Key) == 8 ? 0x7fffffffffffffffll : 0x7fffffffll), 0x7fffffff};
    }
};

// Elements of rows as a problem ranks them. Problem: largest: the largest first; last: of equals the last first.
template <class Problem>
struct Ranking
{
    using Value = typename Problem::X::Type;
    using Key = decltype(rankingKey(Value{}));
    using Element = Ranked<Key>;

    // The element number `index` of a row that begins at `row`.
    static WPK_DEVICE Element element(const Value* row, int index)
    {
        const Key key = rankingKey(load<Value, 1>(row + index * Problem::X::rowStride)[0]);
        return {Problem::largest ? static_cast<Key>(~key) : key, Problem::last ? ~index : index};
    }

    // The index of an element.
    static WPK_DEVICE int64 indexOf(const Element& element)
    {
        return Problem::last ? ~element.index : element.index;
    }
};

} // namespace wpk
