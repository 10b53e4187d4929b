// The exponential of each of n numbers, by the unit that gives powers of two.
#include <wpk/kernels/numbers/near_exponential.cuh>

using namespace wpk;

WPK_KERNEL(64) near_exponentials(const float* x, float* y, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        y[i] = nearExponential(x[i]);
}
WPK_EXPORT(near_exponentials)
