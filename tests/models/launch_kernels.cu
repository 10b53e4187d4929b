// Kernels that need what launches of sm_90 have: clusters, early launch, tensor maps.
#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/mbarrier.cuh>
#include <wpk/kernels/tma.cuh>

namespace
{
constexpr int kThreads = 128;

// Stores what a tensor copy has brought, as it lies.
WPK_DEVICE void store(const unsigned char* box, unsigned char* y, int bytes)
{
    for (int i = static_cast<int>(threadIdx.x); i < bytes; i += kThreads)
        y[i] = box[i];
}
} // namespace

// y[i] = x[(i + shift) % n] + 1, after a while and by blocks that some must wait for: a kernel that began to read
// before this one has ended would find what was there before.
WPK_KERNEL(kThreads) shifted_sum(const float* x, int n, int shift, float* y)
{
    const int i = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
    wpk::releaseNext();
    wpk::waitForPrevious();
#if WPK_ON_GPU
    if (blockIdx.x % 3 == 0)
        __nanosleep(20000);
#endif
    if (i < n)
        y[i] = *static_cast<const volatile float*>(x + (i + shift) % n) + 1.0f;
}
WPK_EXPORT(shifted_sum)

// The box of `bytes` at (column, row), as it lies in shared memory.
WPK_KERNEL(kThreads)
load_box(int column, int row, int bytes, WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y)
{
    WPK_SHARED(unsigned char, memory);
    const wpk::SharedAddress box = wpk::sharedAddress(memory), barrier = box + static_cast<wpk::uint32>(bytes);
    if (threadIdx.x == 0)
    {
        wpk::initBarrier(barrier, 1);
        wpk::fenceBarrierInit();
        wpk::arriveExpectBytes(barrier, bytes);
        wpk::copyTensor(box, &map, barrier, {column, row});
    }
    __syncthreads();
    wpk::waitBarrier(barrier, 0);
    store(memory, y, bytes);
}
WPK_EXPORT(load_box)

#if WPK_ON_GPU
// Pixels from (w, h) of the first image on, each moved by the tap's place (right, down) in the window.
WPK_KERNEL(kThreads)
load_pixels(int w, int h, int right, int down, int bytes, WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y)
{
    WPK_SHARED(unsigned char, memory);
    const wpk::SharedAddress box = wpk::sharedAddress(memory), barrier = box + static_cast<wpk::uint32>(bytes);
    if (threadIdx.x == 0)
    {
        wpk::initBarrier(barrier, 1);
        wpk::fenceBarrierInit();
        wpk::arriveExpectBytes(barrier, bytes);
        asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
                     " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(box),
            "l"(&map), "r"(barrier), "r"(0), "r"(w), "r"(h), "r"(0), "h"(static_cast<short>(right)),
            "h"(static_cast<short>(down))
            : "memory");
    }
    __syncthreads();
    wpk::waitBarrier(barrier, 0);
    store(memory, y, bytes);
}

// Every block reads the x of the next block of its cluster from that block's shared memory.
WPK_KERNEL(kThreads) from_neighbour(const float* x, float* y)
{
    __shared__ float mine[kThreads];
    const int block = static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    const int i = block * kThreads + static_cast<int>(threadIdx.x);
    wpk::uint32 rank, size, address;
    float value;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    mine[threadIdx.x] = x[i];
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(address)
        : "r"(wpk::sharedAddress(mine + threadIdx.x)), "r"((rank + 1) % size));
    asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
    y[i] = value;
    // A block's shared memory stays until all have read it.
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}
#endif
