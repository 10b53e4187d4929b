// D[64, N] = A[64, K] * B[K, N]: the tiles arrive as bytes, in whatever layout the descriptors then tell.
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace
{
using Element = wpk::Half;
constexpr int kColumns = 64, kSwizzleA = 128, kSwizzleB = 128;
constexpr wpk::Major kMajorA = wpk::Major::k, kMajorB = wpk::Major::k;
constexpr bool kFromRegisters = false;

// What follows a tile's start: the descriptor's two offsets, and the way along K in bytes.
struct Layout
{
    int leading, stride, step;
};

// A's rows of this warp, from a plain matrix with `words` of 32 bits in a row.
WPK_DEVICE void loadFragment(wpk::uint32 (&a)[4], const wpk::uint32* rows, int words, int step)
{
    const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4;
    for (int i = 0; i < 4; ++i)
        a[i] = rows[(row + i % 2 * 8) * words + step * 8 + thread % 4 + i / 2 * 4];
}

WPK_DEVICE void multiply(float (&d)[kColumns / 2], const wpk::uint32* rows, wpk::SharedAddress shared, int bytesA,
    int steps, Layout a, Layout b)
{
    wpk::uint64 left = wpk::matrixDescriptor<kSwizzleA>(shared, a.leading, a.stride);
    wpk::uint64 right = wpk::matrixDescriptor<kSwizzleB>(shared + bytesA, b.leading, b.stride);
    for (int step = 0; step < steps; ++step)
    {
        if constexpr (kFromRegisters)
        {
            wpk::uint32 fragment[4];
            loadFragment(fragment, rows, steps * 8, step);
            wpk::fenceWgmma();
            wpk::wgmma<Element, kMajorB>(d, fragment, right, step > 0);
        }
        else
        {
            wpk::fenceWgmma();
            wpk::wgmma<Element, kMajorA, kMajorB>(d, left, right, step > 0);
        }
        wpk::commitWgmma();
        wpk::waitWgmma<0>(d);
        left += static_cast<wpk::uint64>(a.step / 16);
        right += static_cast<wpk::uint64>(b.step / 16);
    }
}
} // namespace

WPK_KERNEL(128)
wgmma_product(const unsigned char* a, const unsigned char* b, int bytesA, int bytesB, int steps, int leadingA,
    int strideA, int stepA, int leadingB, int strideB, int stepB, float* y)
{
    WPK_SHARED(unsigned char, memory);
    const wpk::SharedAddress shared = wpk::sharedAddress(memory), barrier = shared + bytesA + bytesB;
    const int thread = static_cast<int>(threadIdx.x);
    if (thread == 0)
    {
        wpk::initBarrier(barrier, 1);
        wpk::fenceBarrierInit();
        wpk::arriveExpectBytes(barrier, bytesA + bytesB);
        wpk::copyBulk(shared, a, bytesA, barrier);
        wpk::copyBulk(shared + bytesA, b, bytesB, barrier);
    }
    __syncthreads();
    wpk::waitBarrier(barrier, 0);
    float d[kColumns / 2] = {};
    multiply(d, reinterpret_cast<const wpk::uint32*>(a), shared, bytesA, steps, {leadingA, strideA, stepA},
        {leadingB, strideB, stepB});
    const int row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
    for (int i = 0; i < kColumns / 2; ++i)
        y[(row + i % 4 / 2 * 8) * kColumns + i / 4 * 8 + column + i % 2] = d[i];
}
WPK_EXPORT(wgmma_product)
