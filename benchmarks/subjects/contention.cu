// What instructions of some warps take while warpgroups of the same SM multiply, and products beside these
// instructions.
//
// The first `groups` warpgroups of a block multiply 64 x N x 16, four products at a time, `products` times in all; each
// of the other warps issues `rounds` times 64 times Beside, eight of them independent of each other. A warp notes its
// cycles.
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/numbers/gelu.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace
{
constexpr int kThreads = 512, kChains = 8, kRepeated = 8, kTogether = 4, kTileBytes = 32768;

struct MultiplyAdd
{
    static WPK_DEVICE void run(float& value, float factor)
    {
        asm volatile("fma.rn.f32 %0, %0, %1, 0f3e800000;" : "+f"(value) : "f"(factor));
    }
};
struct Minimum
{
    static WPK_DEVICE void run(float& value, float factor)
    {
        asm volatile("min.f32 %0, %0, %1;" : "+f"(value) : "f"(factor));
    }
};
struct PowerOfTwo
{
    static WPK_DEVICE void run(float& value, float)
    {
        asm volatile("ex2.approx.ftz.f32 %0, %0;" : "+f"(value));
    }
};
struct Gelu
{
    static WPK_DEVICE void run(float& value, float)
    {
        value = wpk::gelu(value);
        asm volatile("" : "+f"(value)); // the next one begins with it
    }
};

template <class T, int Count>
WPK_DEVICE T sumOf(const T (&values)[Count])
{
    T sum = 0;
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
        sum += values[i];
    return sum;
}

template <int Columns>
WPK_DEVICE float multiply(wpk::SharedAddress tile, int products)
{
    float sums[Columns / 2] = {};
    const wpk::uint64 factor = wpk::swizzledDescriptor(tile);
    wpk::fenceWgmma();
    WPK_KEEP_LOOP
    for (int i = 0; i < products; i += kTogether)
    {
        WPK_UNROLL
        for (int product = 0; product < kTogether; ++product)
            wpk::wgmma<wpk::Half>(sums, factor + 2 * product, factor + 2 * product, 1);
        wpk::commitWgmma();
        wpk::waitWgmma<0>(sums);
    }
    return sumOf(sums);
}

template <class Beside>
WPK_DEVICE float issue(const float* x, int rounds)
{
    float values[kChains];
    WPK_UNROLL
    for (int i = 0; i < kChains; ++i)
        values[i] = x[i];
    const float factor = x[kChains];
    WPK_KEEP_LOOP
    for (int round = 0; round < rounds; ++round)
    {
        WPK_UNROLL
        for (int i = 0; i < kChains * kRepeated; ++i)
            Beside::run(values[i % kChains], factor);
    }
    return sumOf(values);
}

template <class Beside, int Columns>
WPK_DEVICE void measure(const float* x, int groups, int products, int rounds, float* unused, int* cycles)
{
    WPK_SHARED(unsigned char, tile);
    for (int i = static_cast<int>(threadIdx.x) * 4; i < kTileBytes; i += static_cast<int>(blockDim.x) * 4)
        *reinterpret_cast<wpk::uint32*>(tile + i) = 0;
    wpk::fenceAsyncProxy();
    __syncthreads();
    const bool multiplies = static_cast<int>(threadIdx.x) / 128 < groups;
    const int begin = static_cast<int>(clock());
    const float result = multiplies ? multiply<Columns>(wpk::sharedAddress(tile), products) : issue<Beside>(x, rounds);
    const int end = static_cast<int>(clock());
    if (result == x[kChains + 1])
        *unused = result;
    if (threadIdx.x % 32 == 0)
        cycles[(blockIdx.x * blockDim.x + threadIdx.x) / 32] = end - begin;
}
} // namespace

#define MEASURED(name, Beside, columns)                                                                \
    WPK_KERNEL(kThreads, 1)                                                                            \
    name##_##columns(const float* x, int groups, int products, int rounds, float* unused, int* cycles) \
    {                                                                                                  \
        measure<Beside, columns>(x, groups, products, rounds, unused, cycles);                         \
    }
MEASURED(multiply_add, MultiplyAdd, 64)
MEASURED(minimum, Minimum, 64)
MEASURED(power_of_two, PowerOfTwo, 64)
MEASURED(gelu, Gelu, 64)
MEASURED(multiply_add, MultiplyAdd, 192)
MEASURED(minimum, Minimum, 192)
MEASURED(power_of_two, PowerOfTwo, 192)
MEASURED(gelu, Gelu, 192)
