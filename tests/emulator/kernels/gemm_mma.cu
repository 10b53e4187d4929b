// C[M, N] (float) = A[M, K] * B[K, N], row-major, K and N multiples of 8: a pipeline of asynchronous
// copies into swizzled shared memory, matrix loads, and mma tiles.
#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/mma/mma.cuh>

namespace
{

using Element = wpk::Half; // @element
constexpr int kBlockM = 64, kBlockN = 64, kBlockK = 32, kWarpsM = 2, kWarpsN = 2, kStages = 3;
constexpr int kThreads = kWarpsM * kWarpsN * 32;
constexpr int kTilesM = kBlockM / kWarpsM / 16, kTilesN = kBlockN / kWarpsN / 8;
constexpr int kBytesA = kBlockM * kBlockK * 2, kBytesB = kBlockK * kBlockN * 2, kBytesStage = kBytesA + kBytesB;
constexpr int kChunksA = kBlockK / 8, kChunksB = kBlockN / 8; // of 16 bytes, in a row

WPK_DEVICE int offsetA(int row, int chunk)
{
    return (row * kChunksA + (chunk ^ (row / 2 % kChunksA))) * 16; // @place_in_a
}
WPK_DEVICE int offsetB(int row, int chunk)
{
    return (row * kChunksB + (chunk ^ (row % kChunksB))) * 16; // @place_in_b
}

struct Operands
{
    const Element *a, *b;
    int m, n, k;
};

WPK_DEVICE void loadStage(wpk::SharedAddress stage, const Operands& operands, int firstM, int firstN, int firstK)
{
    const int thread = static_cast<int>(threadIdx.x);
    for (int chunk = thread; chunk < kBlockM * kChunksA; chunk += kThreads)
    {
        const int row = chunk / kChunksA, column = chunk % kChunksA, m = firstM + row, k = firstK + column * 8;
        const bool inside = m < operands.m && k < operands.k; // @inside_a
        const Element* const source = inside ? operands.a + m * operands.k + k : operands.a;
        wpk::copyAsync<16>(stage + offsetA(row, column), source, inside ? 16 : 0); // @a_copied
    }
    for (int chunk = thread; chunk < kBlockK * kChunksB; chunk += kThreads)
    {
        const int row = chunk / kChunksB, column = chunk % kChunksB, k = firstK + row, n = firstN + column * 8;
        const bool inside = k < operands.k && n < operands.n;
        const Element* const source = inside ? operands.b + k * operands.n + n : operands.b;
        wpk::copyAsync<16>(stage + kBytesA + offsetB(row, column), source, inside ? 16 : 0);
    }
}

struct Fragments
{
    wpk::uint32 a[kTilesM][4];
    wpk::uint32 b[kTilesN][2];
};

WPK_DEVICE void loadFragments(Fragments& fragments, wpk::SharedAddress stage, int step, int warpM, int warpN)
{
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (int i = 0; i < kTilesM; ++i)
    {
        const int row = warpM * (kBlockM / kWarpsM) + i * 16 + lane % 16;
        wpk::loadMatrix4(fragments.a[i], stage + offsetA(row, step * 2 + lane / 16)); // @a_loaded
    }
    for (int j = 0; j < kTilesN; j += 2)
    {
        const int column = (warpN * (kBlockN / kWarpsN) + j * 8) / 8 + lane / 16;
        wpk::uint32 words[4];
        wpk::loadMatrix4Transposed(words, stage + kBytesA + offsetB(step * 16 + lane % 16, column));
        fragments.b[j][0] = words[0];
        fragments.b[j][1] = words[1];
        fragments.b[j + 1][0] = words[2];
        fragments.b[j + 1][1] = words[3];
    }
}

WPK_DEVICE void storeTile(const float (&acc)[kTilesM][kTilesN][4], float* c, int m, int n, int firstM, int firstN)
{
    const int lane = static_cast<int>(threadIdx.x % 32);
    for (int i = 0; i < kTilesM; ++i)
    {
        for (int j = 0; j < kTilesN; ++j)
        {
            for (int half = 0; half < 2; ++half)
            {
                const int row = firstM + i * 16 + lane / 4 + half * 8, column = firstN + j * 8 + lane % 4 * 2;
                if (row < m && column < n) // @inside_c
                {
                    const wpk::Vector<float, 2> pair{{acc[i][j][half * 2], acc[i][j][half * 2 + 1]}};
                    wpk::store(c + row * n + column, pair);
                }
            }
        }
    }
}

} // namespace

WPK_KERNEL(kThreads) gemm_mma(const void* a, const void* b, float* c, int m, int n, int k)
{
    WPK_SHARED(char, memory);
    const wpk::SharedAddress shared = wpk::sharedAddress(memory);
    const Operands operands{static_cast<const Element*>(a), static_cast<const Element*>(b), m, n, k};
    const int warp = static_cast<int>(threadIdx.x / 32), warpM = warp / kWarpsN, warpN = warp % kWarpsN;
    const int firstM = static_cast<int>(blockIdx.y) * kBlockM, firstN = static_cast<int>(blockIdx.x) * kBlockN;
    const int steps = (k + kBlockK - 1) / kBlockK;
    float acc[kTilesM][kTilesN][4] = {};
    Fragments fragments[2];
    for (int step = 0; step < kStages - 1; ++step)
    {
        if (step < steps)
            loadStage(shared + step * kBytesStage, operands, firstM, firstN, step * kBlockK);
        wpk::commitCopies(); // @first_committed
    }
    for (int step = 0; step < steps; ++step)
    {
        wpk::waitCopies<kStages - 2>();       // @stage_awaited
        __syncthreads();                      // @stage_there
        const int ahead = step + kStages - 1; // @stage_ahead
        if (ahead < steps)
            loadStage(shared + ahead % kStages * kBytesStage, operands, firstM, firstN, ahead * kBlockK);
        wpk::commitCopies();
        const wpk::SharedAddress stage = shared + step % kStages * kBytesStage;
        loadFragments(fragments[0], stage, 0, warpM, warpN);
        WPK_UNROLL
        for (int i = 0; i < kBlockK / 16; ++i)
        {
            if (i + 1 < kBlockK / 16)
                loadFragments(fragments[(i + 1) & 1], stage, i + 1, warpM, warpN);
            wpk::mmaTile(Element{}, acc, fragments[i & 1].a, fragments[i & 1].b);
        }
    }
    storeTile(acc, c, m, n, firstM + warpM * (kBlockM / kWarpsM), firstN + warpN * (kBlockN / kWarpsN));
}
WPK_EXPORT(gemm_mma)
