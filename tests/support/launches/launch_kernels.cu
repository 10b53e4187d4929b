// Kernels that need what launches of sm_90 have: clusters, early launch, tensor maps.
#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>

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
    wpk::waitForPrevious(); // @previous_awaited
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
        wpk::copyPixels(
            box, &map, barrier, {0, w, h, 0}, {static_cast<wpk::uint16>(right), static_cast<wpk::uint16>(down)});
    }
    __syncthreads();
    wpk::waitBarrier(barrier, 0);
    store(memory, y, bytes);
}
WPK_EXPORT(load_pixels)

// Every block reads the x of the next block of its cluster from that block's shared memory.
WPK_KERNEL(kThreads) from_neighbour(const float* x, float* y)
{
    WPK_SHARED(float, mine);
    const int block = static_cast<int>(blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z));
    const int i = block * kThreads + static_cast<int>(threadIdx.x),
              next = (wpk::clusterRank() + 1) % wpk::clusterBlocks();
    wpk::store<float, 1>(mine + threadIdx.x, {x[i]});
    wpk::syncCluster();
    y[i] = wpk::loadCluster<float, 1>(wpk::clusterAddress(wpk::sharedAddress(mine + threadIdx.x), next))[0];
    wpk::syncCluster(); // a block's shared memory stays until all have read it
}
WPK_EXPORT(from_neighbour)
