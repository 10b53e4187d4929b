// Products of a matrix and one row in shared memory, on the ordinary cores. The matrix's rows are whole runs of eight
// elements, with zeros behind the row, and lie where they are or are staged in shared memory.
#pragma once

#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// The largest power of two up to `most`, and the smallest from `least` on.
WPK_DEVICE constexpr int powerUpTo(int most)
{
    int power = 1;
    while (power * 2 <= most)
        power *= 2;
    return power;
}
WPK_DEVICE constexpr int powerFrom(int least)
{
    return powerUpTo(least) < least ? 2 * powerUpTo(least) : powerUpTo(least);
}

// Starts copies of `Rows` rows of `Runs` runs; what lies beyond `rows` and `runs` becomes zero.
template <int Threads, int Rows, int Runs, int Run, int Stride, class Weight>
WPK_DEVICE void stageRows(Weight* target, const Weight* source, int sourceStride, int rows, int runs)
{
    constexpr int chunk = 16 / static_cast<int>(sizeof(Weight)), chunks = Runs * Run / chunk;
    for (int i = static_cast<int>(threadIdx.x); i < Rows * chunks; i += Threads)
    {
        const int row = i / chunks, column = i % chunks * chunk;
        const bool isThere = row < rows && column < runs * Run;
        const Weight* const from = isThere ? source + row * sourceStride + column : source;
        copyAsync<16>(sharedAddress(target + row * Stride + column), from, isThere ? 16 : 0);
    }
}

// f(row, sum over columns of weights[row, column] * vector[column]) for each of `Rows` rows, `runs` runs of each.
// As many lanes share a row as leave something to do for every thread.
template <int Threads, int Rows, int Runs, class Weight, class Function>
WPK_DEVICE void multiplyRows(const Weight* weights, int stride, const float* vector, int rows, int runs, Function f)
{
    constexpr int chunk = 16 / static_cast<int>(sizeof(Weight)), chunks = 8 / chunk;
    constexpr int useful = minOf(kWarpSize, powerFrom(Runs));
    constexpr int G = minOf(useful, maxOf(4, powerUpTo(maxOf(1, Threads / Rows)))), atOnce = Threads / G;
    const int sub = static_cast<int>(threadIdx.x) % G, group = static_cast<int>(threadIdx.x) / G;
    for (int first = 0; first < Rows; first += atOnce)
    {
        const int row = first + group;
        float sum = 0.0f;
        for (int r = sub; row < rows && r < runs; r += G)
        {
            WPK_UNROLL
            for (int part = 0; part < chunks; ++part)
            {
                const int column = r * 8 + part * chunk;
                const auto factors = load<Weight, chunk>(weights + row * stride + column);
                WPK_UNROLL
                for (int i = 0; i < chunk; i += 4)
                {
                    const auto others = load<float, 4>(vector + column + i);
                    WPK_UNROLL
                    for (int j = 0; j < 4; ++j)
                        sum += toFloat(factors[i + j]) * others[j];
                }
            }
        }
        WPK_UNROLL
        for (int distance = G / 2; distance > 0; distance /= 2)
            sum += shuffleXor(sum, distance);
        if (sub == 0 && row < rows)
            f(row, sum);
    }
}

} // namespace detail

} // namespace wpk
