// C[M, N] (float) = A[M, K] * B[N, K]^T in half: one producer warp copies tiles by TMA into a ring of
// stages, two warpgroups multiply them, each 64 rows.
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace
{
constexpr int kBlockM = 128, kBlockN = 128, kBlockK = 64, kStages = 3, kThreads = 384, kConsumers = 256;
constexpr int kBytesA = kBlockM * kBlockK * 2, kBytesB = kBlockN * kBlockK * 2, kBytesStage = kBytesA + kBytesB;

WPK_DEVICE void produce(const wpk::TensorMap* a, const wpk::TensorMap* b, wpk::SharedAddress shared, int steps)
{
    const wpk::SharedAddress full = shared + kStages * kBytesStage, empty = full + kStages * 8;
    for (int step = 0; step < steps; ++step)
    {
        const int slot = step % kStages, parity = step / kStages & 1;
        const wpk::SharedAddress stage = shared + slot * kBytesStage;
        wpk::waitBarrier(empty + slot * 8, parity ^ 1);       // @slot_awaited
        wpk::arriveExpectBytes(full + slot * 8, kBytesStage); // @bytes_expected
        wpk::copyTensor(stage, a, full + slot * 8, {step * kBlockK, static_cast<int>(blockIdx.y) * kBlockM});
        wpk::copyTensor(stage + kBytesA, b, full + slot * 8, {step * kBlockK, static_cast<int>(blockIdx.x) * kBlockN});
    }
}

WPK_DEVICE void consume(float (&acc)[kBlockN / 2], wpk::SharedAddress shared, int group, int steps)
{
    const wpk::SharedAddress full = shared + kStages * kBytesStage, empty = full + kStages * 8;
    for (int step = 0; step < steps; ++step)
    {
        const int slot = step % kStages, parity = step / kStages & 1;
        const wpk::SharedAddress stage = shared + slot * kBytesStage;
        wpk::waitBarrier(full + slot * 8, parity);                                       // @tiles_awaited
        const wpk::uint64 a = wpk::swizzledDescriptor(stage + group * 64 * kBlockK * 2); // @rows_of_group
        const wpk::uint64 b = wpk::swizzledDescriptor(stage + kBytesA);
        wpk::fenceWgmma();
        WPK_UNROLL
        for (int k = 0; k < kBlockK / 16; ++k)
            wpk::wgmma<wpk::Half>(acc, a + k * 2, b + k * 2, 1); // @products
        wpk::commitWgmma();
        wpk::waitWgmma<0>(acc);               // @products_done
        wpk::arriveBarrier(empty + slot * 8); // @slot_released
    }
}

WPK_DEVICE void storeTile(const float (&acc)[kBlockN / 2], float* c, int m, int n, int firstRow, int firstColumn)
{
    for (int j = 0; j < kBlockN / 8; ++j)
    {
        for (int half = 0; half < 2; ++half)
        {
            const int row = firstRow + half * 8, column = firstColumn + j * 8;
            if (row < m && column < n)
            {
                const wpk::Vector<float, 2> pair{{acc[j * 4 + half * 2], acc[j * 4 + half * 2 + 1]}};
                wpk::store(c + row * n + column, pair);
            }
        }
    }
}
} // namespace

WPK_KERNEL(kThreads)
gemm_wgmma(
    WPK_GRID_CONSTANT const wpk::TensorMap a, WPK_GRID_CONSTANT const wpk::TensorMap b, float* c, int m, int n, int k)
{
    WPK_SHARED(char, memory);
    const wpk::SharedAddress shared = wpk::sharedAddress(memory);
    const wpk::SharedAddress full = shared + kStages * kBytesStage, empty = full + kStages * 8;
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, steps = (k + kBlockK - 1) / kBlockK;
    if (thread == 0)
    {
        for (int slot = 0; slot < kStages; ++slot)
        {
            wpk::initBarrier(full + slot * 8, 1);
            wpk::initBarrier(empty + slot * 8, kConsumers); // @arrivals_expected
        }
        wpk::fenceBarrierInit();
    }
    __syncthreads();
    if (thread < 128)
    {
        wpk::releaseRegisters<40>();
        if (thread == 0)
            produce(&a, &b, shared, steps);
    }
    else
    {
        wpk::claimRegisters<232>();
        const int group = thread / 128 - 1, warp = thread / 32 % 4;
        float acc[kBlockN / 2] = {};
        consume(acc, shared, group, steps);
        const int row = static_cast<int>(blockIdx.y) * kBlockM + group * 64 + warp * 16 + lane / 4;
        storeTile(acc, c, m, n, row, static_cast<int>(blockIdx.x) * kBlockN + lane % 4 * 2);
    }
}
WPK_EXPORT(gemm_wgmma)
