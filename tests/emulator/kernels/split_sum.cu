// Sums of a column's rows: each block adds its share, and the last one adds the parts.
#include <wpk/kernels/barriers/arrival.cuh>

template <class Arrive>
WPK_DEVICE void splitSum(const float* x, float* y, float* parts, int rows, const Arrive& arriveLast)
{
    const int column = static_cast<int>(threadIdx.x), blocks = static_cast<int>(gridDim.x);
    float sum = 0.0f;
    for (int row = static_cast<int>(blockIdx.x); row < rows; row += blocks)
        sum += x[row * 64 + column];
    wpk::store<float, 1>(parts + static_cast<int>(blockIdx.x) * 64 + column, {sum});
    if (!arriveLast(blocks))
        return;
    sum = 0.0f;
    // The neighbour's column: a thread reads what others wrote.
    for (int part = 0; part < blocks; ++part)
        sum += wpk::loadFresh<float, 1>(parts + part * 64 + (column ^ 33))[0];
    y[column ^ 33] = sum;
}

WPK_KERNEL(64) split_sum(const float* x, float* y, float* parts, int* counter, int rows)
{
    splitSum(x, y, parts, rows, [=](int blocks) { return wpk::arriveLast(counter, blocks); });
}
WPK_EXPORT(split_sum)

WPK_KERNEL(64) split_sum_by_flag(const float* x, float* y, float* parts, int* counter, int rows)
{
    WPK_SHARED(int, flag);
    splitSum(x, y, parts, rows, [=](int blocks) { return wpk::arriveLast(counter, blocks, flag); });
}
WPK_EXPORT(split_sum_by_flag)
