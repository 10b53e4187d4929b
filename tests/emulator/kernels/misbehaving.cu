// Kernels that break a rule, each in one way.
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/mma/store_matrix.cuh>
#include <wpk/kernels/sums/warp.cuh>

using namespace wpk;

WPK_KERNEL(64) divergent_barrier(int* y)
{
    if (threadIdx.x < 40)
        __syncthreads();
    else
        __syncwarp();
    y[threadIdx.x] = 1;
}
WPK_EXPORT(divergent_barrier)

WPK_KERNEL(64) different_operations(uint32* y)
{
    const uint32 value = threadIdx.x;
    y[value] = laneIndex() < 7 ? shuffleXor(value, 1) : ballot(true);
}
WPK_EXPORT(different_operations)

WPK_KERNEL(32) outside_mask(uint32* y)
{
    y[threadIdx.x] = shuffleXor(threadIdx.x, 1, 0xffffu);
}
WPK_EXPORT(outside_mask)

WPK_KERNEL(32) write_behind(float* y, int offset)
{
    y[static_cast<int>(threadIdx.x) + offset] = 1.0f;
}
WPK_EXPORT(write_behind)

WPK_KERNEL(32) read_behind(const float* x, float* y, int offset)
{
    y[threadIdx.x] = x[static_cast<int>(threadIdx.x) + offset];
}
WPK_EXPORT(read_behind)

WPK_KERNEL(32) null_pointer(int* y)
{
    y[threadIdx.x] = *reinterpret_cast<const int*>(8ul * threadIdx.x);
}
WPK_EXPORT(null_pointer)

WPK_KERNEL(32) write_behind_shared(float* y, int offset)
{
    WPK_SHARED(float, tile);
    tile[static_cast<int>(threadIdx.x) + offset] = 1.0f;
    __syncthreads();
    y[threadIdx.x] = tile[threadIdx.x];
}
WPK_EXPORT(write_behind_shared)

WPK_KERNEL(32) read_unwritten_shared(float* y)
{
    WPK_SHARED(float, tile);
    __shared__ float fixed[32];
    y[threadIdx.x] = tile[threadIdx.x];
    y[32 + threadIdx.x] = fixed[threadIdx.x];
    fixed[threadIdx.x] = 0.0f;
    tile[threadIdx.x] = 0.0f;
}
WPK_EXPORT(read_unwritten_shared)

WPK_KERNEL(64) missing_barrier(float* y)
{
    __shared__ float tile[64];
    store(tile + threadIdx.x, Vector<float, 1>{{static_cast<float>(threadIdx.x)}});
    y[threadIdx.x] = load<float, 1>(tile + 63 - threadIdx.x)[0];
}
WPK_EXPORT(missing_barrier)

WPK_KERNEL(32) misaligned_load(const float* x, float* y)
{
    y[threadIdx.x] = load<float, 4>(x + threadIdx.x)[0];
}
WPK_EXPORT(misaligned_load)

WPK_KERNEL(32) misaligned_copy(const float* x)
{
    WPK_SHARED(float, tile);
    copyAsync<16>(sharedAddress(tile + threadIdx.x), x, 16);
}
WPK_EXPORT(misaligned_copy)

WPK_KERNEL(32) misaligned_rows(uint32* y)
{
    WPK_SHARED(char, tile);
    uint32 words[4];
    loadMatrix4(words, sharedAddress(tile + 8 * threadIdx.x));
    y[threadIdx.x] = words[0];
}
WPK_EXPORT(misaligned_rows)

WPK_KERNEL(32) misaligned_rows_stored()
{
    WPK_SHARED(unsigned char, tile);
    const uint32 words[4] = {};
    storeMatrices(tile + 8 * threadIdx.x, words);
}
WPK_EXPORT(misaligned_rows_stored)

WPK_KERNEL(32) partial_warp_rows_stored()
{
    WPK_SHARED(unsigned char, tile);
    const uint32 words[4] = {};
    if (threadIdx.x < 16)
        return;
    storeMatrices(tile + 16 * threadIdx.x, words);
}
WPK_EXPORT(partial_warp_rows_stored)

WPK_KERNEL(32) partial_warp_tile(float* y)
{
    float acc[1][1][4] = {};
    const uint32 a[1][4] = {}, b[1][2] = {};
    if (threadIdx.x < 16)
        return;
    mmaTile(Half{}, acc, a, b);
    y[threadIdx.x] = acc[0][0][0];
}
WPK_EXPORT(partial_warp_tile)

WPK_KERNEL(32) unwaited_copy(const float* x, float* y)
{
    WPK_SHARED(float, tile);
    copyAsync<4>(sharedAddress(tile + threadIdx.x), x + threadIdx.x);
    commitCopies();
    y[threadIdx.x] = tile[threadIdx.x];
}
WPK_EXPORT(unwaited_copy)

WPK_KERNEL(32) barrier_nobody_reaches(int* y)
{
    WPK_SHARED(char, memory);
    if (threadIdx.x == 0)
        initBarrier(sharedAddress(memory), 33);
    __syncthreads();
    arriveBarrier(sharedAddress(memory));
    waitBarrier(sharedAddress(memory), 0);
    y[threadIdx.x] = 1;
}
WPK_EXPORT(barrier_nobody_reaches)

WPK_KERNEL(32) divide_by_zero(const int* x, int* y)
{
    y[threadIdx.x] = 7 / x[threadIdx.x];
}
WPK_EXPORT(divide_by_zero)

WPK_KERNEL(1) overflow_stack(int* y)
{
    volatile char local[80 * 1024];
    local[*y] = 1;
    *y = local[0];
}
WPK_EXPORT(overflow_stack)

WPK_KERNEL(32) spin(volatile int* y)
{
    while (y[0] == 0)
    {
    }
    y[1] = 1;
}
WPK_EXPORT(spin)

// Rows of 32 floats, read column by column: every lane in one bank unless rows are padded.
WPK_KERNEL(32) read_columns(float* y, int stride)
{
    WPK_SHARED(float, tile);
    for (int i = 0; i < 32; ++i)
        store(tile + i * stride + static_cast<int>(threadIdx.x), Vector<float, 1>{{1.0f}});
    __syncthreads();
    float sum = 0.0f;
    for (int i = 0; i < 32; ++i)
        sum += load<float, 1>(tile + static_cast<int>(threadIdx.x) * stride + i)[0];
    y[threadIdx.x] = sum;
}
WPK_EXPORT(read_columns)
