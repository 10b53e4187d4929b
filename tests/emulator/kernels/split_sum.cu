// Sums of a column's rows: each block adds its share, and the last one adds the parts.
#include <wpk/kernels/arrival.cuh>

WPK_KERNEL(64) split_sum(const float* x, float* y, float* parts, int* counter, int rows)
{
    WPK_SHARED(int, flag);
    const int column = static_cast<int>(threadIdx.x), blocks = static_cast<int>(gridDim.x);
    float sum = 0.0f;
    for (int row = static_cast<int>(blockIdx.x); row < rows; row += blocks)
        sum += x[row * 64 + column];
    wpk::store<float, 1>(parts + static_cast<int>(blockIdx.x) * 64 + column, {sum});
    if (!wpk::arriveLast(counter, blocks, flag))
        return;
    sum = 0.0f;
    // The neighbour's column: a thread reads what others wrote.
    for (int part = 0; part < blocks; ++part)
        sum += wpk::loadFresh<float, 1>(parts + part * 64 + (column ^ 33))[0];
    y[column ^ 33] = sum;
}
WPK_EXPORT(split_sum)
