// A kernel that takes its time, so that one behind it that does not wait is seen to.
#include <wpk/kernels/barriers/early_launch.cuh>

// y = x, in words, after a while and by blocks that some must wait for.
WPK_KERNEL(128) slow_copy(const int* x, int words, int* y)
{
    const int i = static_cast<int>(blockIdx.x) * 128 + static_cast<int>(threadIdx.x);
    wpk::releaseNext();
    wpk::waitForPrevious();
#if WPK_ON_GPU
    if (blockIdx.x % 3 == 0)
        __nanosleep(20000);
#endif
    if (i < words)
        y[i] = *static_cast<const volatile int*>(x + i);
}
WPK_EXPORT(slow_copy)
