// One small kernel for each primitive of the portable headers.
#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/mma/store_matrix.cuh>
#include <wpk/kernels/sums/warp.cuh>

using namespace wpk;

namespace
{

WPK_DEVICE int globalThread()
{
    return static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}

template <class T>
WPK_DEVICE void convert(const float* x, T* there, float* back, int n)
{
    const int i = globalThread();
    if (i >= n)
        return;
    there[i] = fromFloat<T>(x[i]);
    back[i] = toFloat(there[i]);
}

// D = A * B of one 16 x 8 tile a warp, operands given as float, row-major and [k][n].
template <class T>
WPK_DEVICE uint32 pairOf(const float* low, const float* high)
{
    return pack2<T>(*low, *high);
}

template <class T>
WPK_DEVICE void multiplyTile(const float* a, const float* b, float* d)
{
    const int lane = laneIndex(), g = lane / 4, t = lane % 4 * 2;
    uint32 fa[1][4], fb[1][2];
    float acc[1][1][4] = {};
    for (int j = 0; j < 4; ++j)
    {
        const float* const at = a + (g + j % 2 * 8) * 16 + t + j / 2 * 8;
        fa[0][j] = pairOf<T>(at, at + 1);
    }
    for (int j = 0; j < 2; ++j)
        fb[0][j] = pairOf<T>(b + (t + j * 8) * 8 + g, b + (t + j * 8 + 1) * 8 + g);
    mmaTile(T{}, acc, fa, fb);
    for (int i = 0; i < 4; ++i)
        d[(g + i / 2 * 8) * 8 + t + i % 2] = acc[0][0][i];
}

} // namespace

WPK_KERNEL(64) convert_half(const float* x, Half* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_half)

WPK_KERNEL(64) convert_bfloat16(const float* x, Bfloat16* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_bfloat16)

WPK_KERNEL(64) convert_e4m3(const float* x, Float8E4m3* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_e4m3)

WPK_KERNEL(64) convert_e5m2(const float* x, Float8E5m2* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_e5m2)

WPK_KERNEL(64) convert_int8(const float* x, int8* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_int8)

WPK_KERNEL(64) convert_uint8(const float* x, uint8* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_uint8)

WPK_KERNEL(64) convert_int32(const float* x, int32* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_int32)

WPK_KERNEL(64) convert_int64(const float* x, int64* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_int64)

WPK_KERNEL(64) convert_bool(const float* x, bool* there, float* back, int n)
{
    convert(x, there, back, n);
}
WPK_EXPORT(convert_bool)

WPK_KERNEL(64) pack_pairs(const float* x, uint32* half, uint32* bfloat16, float* unpacked, uint32* tf32, int pairs)
{
    const int i = globalThread();
    if (i >= pairs)
        return;
    half[i] = pack2<Half>(x[2 * i], x[2 * i + 1]);
    bfloat16[i] = pack2<Bfloat16>(x[2 * i], x[2 * i + 1]);
    unpacked[2 * i] = unpackLow<Half>(half[i]);
    unpacked[2 * i + 1] = unpackHigh<Half>(half[i]);
    tf32[2 * i] = roundToTf32(x[2 * i]);
    tf32[2 * i + 1] = roundToTf32(x[2 * i + 1]);
}
WPK_EXPORT(pack_pairs)

// Copies n values, reversing the order within each vector.
WPK_KERNEL(64) reverse_vectors(const float* x, float* y, const Half* u, Half* v, int vectors)
{
    const int i = globalThread();
    if (i >= vectors)
        return;
    const Vector<float, 4> four = load<float, 4>(x + 4 * i);
    Vector<float, 4> turned = zeroVector<float, 4>();
    for (int j = 0; j < 4; ++j)
        turned[j] = four[3 - j];
    store(y + 4 * i, turned);
    const Vector<Half, 2> two = load<Half, 2>(u + 2 * i);
    store(v + 2 * i, Vector<Half, 2>{{two[1], two[0]}});
}
WPK_EXPORT(reverse_vectors)

// Sixteen bytes a thread through shared memory, of which `valid` are read.
WPK_KERNEL(32) copy_async(const uint8* x, uint8* y, int valid)
{
    WPK_SHARED(uint8, tile);
    const int at = static_cast<int>(threadIdx.x) * 16, four = 512 + static_cast<int>(threadIdx.x) * 4;
    copyAsync<16>(sharedAddress(tile + at), x + at, valid);
    commitCopies();
    copyAsync<4>(sharedAddress(tile + four), x + four, minOf(valid, 4));
    commitCopies();
    waitCopies<1>();
    store(y + at, load<uint8, 16>(tile + at));
    waitCopies<0>();
    store(y + four, load<uint8, 4>(tile + four));
}
WPK_EXPORT(copy_async)

WPK_KERNEL(32) load_matrices(const uint16* x, uint32* plain, uint32* transposed)
{
    __shared__ __align__(16) uint16 tiles[32 * 8];
    const int lane = laneIndex();
    store(tiles + 8 * lane, load<uint16, 8>(x + 8 * lane));
    __syncwarp();
    uint32 words[4];
    loadMatrix4(words, sharedAddress(tiles + 8 * lane));
    for (int j = 0; j < 4; ++j)
        plain[j * 32 + lane] = words[j];
    loadMatrix4Transposed(words, sharedAddress(tiles + 8 * lane));
    for (int j = 0; j < 4; ++j)
        transposed[j * 32 + lane] = words[j];
}
WPK_EXPORT(load_matrices)

// Register j of each lane to tile j, whose rows lie in another order; then the last two over the first.
WPK_KERNEL(32) store_matrices(const uint32* words, uint32* y)
{
    WPK_SHARED(unsigned char, tiles);
    const int lane = laneIndex();
    uint32 own[4];
    for (int j = 0; j < 4; ++j)
        own[j] = words[j * 32 + lane];
    storeMatrices(tiles + (lane ^ 5) * 16, own);
    __syncwarp(); // @matrices_stored
    const int other = (lane + 1) % 32;
    store(y + other * 4, load<uint32, 4>(reinterpret_cast<const uint32*>(tiles + other * 16)));
    __syncwarp();
    const uint32 two[2] = {own[2], own[3]};
    storeMatrices(tiles + lane * 16, two);
    __syncwarp();
    store(y + (32 + lane) * 4, load<uint32, 4>(reinterpret_cast<const uint32*>(tiles + lane * 16)));
}
WPK_EXPORT(store_matrices)

WPK_KERNEL(32) mma_half(const float* a, const float* b, float* d)
{
    multiplyTile<Half>(a, b, d);
}
WPK_EXPORT(mma_half)

WPK_KERNEL(32) mma_bfloat16(const float* a, const float* b, float* d)
{
    multiplyTile<Bfloat16>(a, b, d);
}
WPK_EXPORT(mma_bfloat16)

// 32 x 24 of k 8 a warp: two by three tiles, an odd count of columns.
WPK_KERNEL(32) mma_tf32(const float* a, const float* b, float* d)
{
    const int lane = laneIndex(), g = lane / 4, t = lane % 4;
    uint32 fa[2][4], fb[3][2];
    float acc[2][3][4] = {};
    for (int i = 0; i < 2; ++i)
    {
        for (int j = 0; j < 4; ++j)
            fa[i][j] = roundToTf32(a[(i * 16 + g + j % 2 * 8) * 8 + t + j / 2 * 4]);
    }
    for (int i = 0; i < 3; ++i)
    {
        for (int j = 0; j < 2; ++j)
            fb[i][j] = roundToTf32(b[(t + j * 4) * 24 + i * 8 + g]);
    }
    mmaTile(Tf32{}, acc, fa, fb);
    for (int i = 0; i < 2 * 3 * 4; ++i)
    {
        const int m = i / 12, n = i / 4 % 3, e = i % 4;
        d[(m * 16 + g + e / 2 * 8) * 24 + n * 8 + t * 2 + e % 2] = acc[m][n][e];
    }
}
WPK_EXPORT(mma_tf32)

WPK_KERNEL(64) shuffles(const float* x, float* y, uint32* votes)
{
    const int i = globalThread(), n = static_cast<int>(blockDim.x);
    y[i] = shuffle(x[i], 5);
    y[n + i] = shuffleXor(x[i], 9);
    y[2 * n + i] = shuffleUp(x[i], 3);
    y[3 * n + i] = shuffleDown(x[i], 3);
    y[4 * n + i] = warpSum(x[i]);
    y[5 * n + i] = warpMax(x[i]);
    votes[i] = wpk::ballot(x[i] > 0.0f);
}
WPK_EXPORT(shuffles)

// Each half of the warp exchanges under a mask of its own.
WPK_KERNEL(32) half_masks(const uint32* x, uint32* y)
{
    const int lane = laneIndex();
    uint32 value = x[lane];
    if (lane < 16)
        value += shuffleXor(value, 1, 0xffffu);
    else
        value += shuffleXor(value, 2, 0xffff0000u);
    y[lane] = value;
}
WPK_EXPORT(half_masks)

template <int Threads>
WPK_DEVICE void reduceBlocks(const float* x, float* sums, float* maxima)
{
    __shared__ float scratch[blockScratch(Threads)];
    const int i = globalThread();
    sums[i] = blockSum<Threads>(x[i], scratch);
    maxima[i] = blockMax<Threads>(x[i], scratch);
}

WPK_KERNEL(20) reduce_blocks_20(const float* x, float* sums, float* maxima)
{
    reduceBlocks<20>(x, sums, maxima);
}
WPK_EXPORT(reduce_blocks_20)

WPK_KERNEL(100) reduce_blocks_100(const float* x, float* sums, float* maxima)
{
    reduceBlocks<100>(x, sums, maxima);
}
WPK_EXPORT(reduce_blocks_100)

WPK_KERNEL(256) reduce_blocks_256(const float* x, float* sums, float* maxima)
{
    reduceBlocks<256>(x, sums, maxima);
}
WPK_EXPORT(reduce_blocks_256)

// Inclusive sums within each warp; warps behind the end leave at once.
WPK_KERNEL(160) scan_warps(const uint32* x, uint32* y, int n)
{
    const int i = globalThread(), lane = laneIndex();
    if (i - lane >= n)
        return;
    uint32 sum = i < n ? x[i] : 0;
    for (int distance = 1; distance < 32; distance *= 2)
    {
        const uint32 below = shuffleUp(sum, distance);
        if (lane >= distance)
            sum += below;
    }
    if (i < n)
        y[i] = sum;
}
WPK_EXPORT(scan_warps)

WPK_KERNEL(128) count_atomically(int* total, float* sum)
{
    atomicAdd(total, 1);
    atomicAdd(sum, 0.5f);
}
WPK_EXPORT(count_atomically)

// 48 KB of static shared memory, transposed through it.
WPK_KERNEL(256) transpose_static(const float* x, float* y)
{
    __shared__ float tile[96][128];
    const int first = static_cast<int>(blockIdx.x) * 96 * 128, n = 96 * 128;
    for (int i = static_cast<int>(threadIdx.x); i < n; i += 256)
        tile[i / 128][i % 128] = x[first + i];
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < n; i += 256)
        y[first + i] = tile[i % 96][i / 96];
}
WPK_EXPORT(transpose_static)

WPK_KERNEL(64) functions(const float* x, float* y, int n)
{
    const int i = globalThread();
    if (i >= n)
        return;
    const float v = x[i];
    const float results[16] = {expf(v), logf(fabsf(v)), tanhf(v), erff(v), sqrtf(fabsf(v)), rsqrtf(fabsf(v)),
        powf(fabsf(v), 1.5f), floorf(v), ceilf(v), rintf(v), sinf(v), cosf(v), fminf(v, 0.5f), fmaxf(v, 0.5f),
        fmaf(v, v, 1.0f), isNan(v) ? 1.0f : 0.0f};
    for (int j = 0; j < 16; ++j)
        y[j * n + i] = results[j];
}
WPK_EXPORT(functions)

// Where in the grid and the block a thread stands.
WPK_KERNEL(24) positions(uint32* y)
{
    const uint32 block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    const uint32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    y[block * 24 + thread] = block * 1000 + thread;
}
WPK_EXPORT(positions)
