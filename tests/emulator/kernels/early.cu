// y[i] = x[i] + weights[i] in a kernel that is launched early: waits that cover a block, or only some of it.
#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/copies/tma.cuh>

// Every thread waits, behind its load of the weight.
WPK_KERNEL(64) all_wait(const float* x, const float* weights, float* y)
{
    const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
    const float weight = weights[i]; // @weight_loaded
    wpk::waitForPrevious();          // @previous_awaited
    y[i] = x[i] + weight;
}
WPK_EXPORT(all_wait)

// One thread waits, the others meet it at a barrier.
WPK_KERNEL(64) one_waits(const float* x, const float* weights, float* y)
{
    const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
    if (threadIdx.x == 5) // @one_awaits_previous
        wpk::waitForPrevious();
    __syncthreads(); // @all_told
    y[i] = x[i] + weights[i];
}
WPK_EXPORT(one_waits)

// x is copied to shared memory first, by each thread for itself.
WPK_KERNEL(64) copied(const float* x, const float* weights, float* y)
{
    WPK_SHARED(float, memory);
    const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
    wpk::waitForPrevious(); // @copies_await_previous
    wpk::copyAsync<4>(wpk::sharedAddress(memory + threadIdx.x), x + i, 4);
    wpk::commitCopies();
    wpk::waitCopies<0>(); // @copies_awaited
    y[i] = memory[threadIdx.x] + weights[i];
}
WPK_EXPORT(copied)

// x is brought by a bulk copy of one thread.
WPK_KERNEL(64) brought(const float* x, const float* weights, float* y)
{
    WPK_SHARED(float, memory);
    const int i = static_cast<int>(blockIdx.x * 64 + threadIdx.x);
    const wpk::SharedAddress place = wpk::sharedAddress(memory), barrier = place + 256;
    wpk::waitForPrevious(); // @bulk_copy_awaits_previous
    if (threadIdx.x == 0)
    {
        wpk::initBarrier(barrier, 1);
        wpk::fenceBarrierInit();
        wpk::arriveExpectBytes(barrier, 256);
        wpk::copyBulk(place, x + i, 256, barrier);
    }
    __syncthreads(); // @bulk_copy_asked
    wpk::waitBarrier(barrier, 0);
    y[i] = memory[threadIdx.x] + weights[i];
}
WPK_EXPORT(brought)
