// Rows of elements in registers as they lie in memory, until they are computed with.
#pragma once

#include <wpk/kernels/numbers/scalar.cuh>

namespace wpk
{

// V elements of one, two or four bytes in whole registers.
template <class T, int V>
struct PackedRow
{
    static constexpr int count = ceilDivide(V * static_cast<int>(sizeof(T)), 4);
    uint32 words[count];

    WPK_DEVICE void pack(const T (&values)[V])
    {
        words[count - 1] = 0;
        memcpy(words, values, sizeof(values));
    }

    WPK_DEVICE float operator[](int i) const
    {
        constexpr int each = 4 / static_cast<int>(sizeof(T));
        static_assert(each * sizeof(T) == 4, "elements of one, two or four bytes");
        uint32 word = words[i / each];
#if WPK_ON_GPU
        // Where words are loaded or zeros, the compiler would choose between their elements, each with an instruction.
        asm("" : "+r"(word));
#endif
        const uint32 bits = word >> (i % each * 8 * static_cast<int>(sizeof(T)));
        T value;
        memcpy(&value, &bits, sizeof(T));
        return toFloat(value);
    }
};

} // namespace wpk
