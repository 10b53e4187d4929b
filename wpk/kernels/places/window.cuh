// Windows of neighbouring outputs over an image: which inputs lie under a tile of outputs, and which tap joins the two.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// One axis of a tile of Count neighbouring outputs, of Outputs in all, whose first is a multiple of Count. `at` counts
// the inputs from the first one under the tile, number first * Stride - Pad of Inputs.
template <int Outputs, int Inputs, int Count, int Filter, int Stride, int Dilation, int Pad>
struct WindowAxis
{
    // Inputs between the first and the last under the tile, those between taps included.
    static constexpr int span = (Count - 1) * Stride + (Filter - 1) * Dilation + 1;
    // Outputs that some input may be summed into.
    static constexpr int pending = minOf(Count, ((Filter - 1) * Dilation + Stride) / Stride);

    // The output of the tile that reads input `at` by tap `tap`; -1 where none does.
    static WPK_DEVICE constexpr int output(int at, int tap)
    {
        const int reach = at - tap * Dilation;
        return reach >= 0 && reach % Stride == 0 && reach / Stride < Count ? reach / Stride : -1;
    }

    // Whether an output of the tile reads input `at`.
    static WPK_DEVICE constexpr bool isUsed(int at)
    {
        for (int tap = 0; tap < Filter; ++tap)
        {
            if (output(at, tap) >= 0)
                return true;
        }
        return false;
    }

    // Inputs of the tile that are used.
    static WPK_DEVICE constexpr int used()
    {
        int count = 0;
        for (int at = 0; at < span; ++at)
            count += isUsed(at);
        return count;
    }

    // The number of the input `at`.
    static WPK_DEVICE int input(int first, int at)
    {
        return first * Stride - Pad + at;
    }

    // Whether the input `at` lies in the image. Only what may lie outside for some tile is compared.
    static WPK_DEVICE bool isInside(int first, int at)
    {
        constexpr int lastFirst = (ceilDivide(Outputs, Count) - 1) * Count;
        const bool begins = at >= Pad || input(first, at) >= 0;                                // @above
        const bool ends = lastFirst * Stride - Pad + at < Inputs || input(first, at) < Inputs; // @below
        return begins && ends;
    }

    // Whether output `output` of the tile is one.
    static WPK_DEVICE bool isOutput(int first, int output)
    {
        return Outputs % Count == 0 || first + output < Outputs; // @is_output
    }
};

} // namespace wpk
