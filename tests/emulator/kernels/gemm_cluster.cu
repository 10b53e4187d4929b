// C[M, N] (float) = A[M, K] * B[N, K]^T in half: the blocks of a cluster share the K range of a 64 x 64 tile and
// add their parts through each other's shared memory. Tiles arrive by TMA in a ring of stages; wgmma.
#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace
{
constexpr int kTile = 64, kBlockK = 64, kStages = 3, kThreads = 128, kBytesTile = kTile * kBlockK * 2;
constexpr int kRow = kTile + 4; // floats of a row of the part: rows begin in different banks
static_assert(kTile * kRow * 4 <= kStages * 2 * kBytesTile, "the part takes the room of the stages");

struct Ring
{
    wpk::SharedAddress shared;
    WPK_DEVICE wpk::SharedAddress stage(int step) const
    {
        return shared + step % kStages * 2 * kBytesTile;
    }
    WPK_DEVICE wpk::SharedAddress barrier(int step) const
    {
        return shared + kStages * 2 * kBytesTile + step % kStages * 8; // @place_of_barriers
    }
};

WPK_DEVICE void request(const Ring& ring, const wpk::TensorMap* a, const wpk::TensorMap* b, int step, int firstStep)
{
    const int k = (firstStep + step) * kBlockK;
    const wpk::SharedAddress barrier = ring.barrier(step);
    wpk::arriveExpectBytes(barrier, 2 * kBytesTile); // @bytes_expected
    wpk::copyTensor(ring.stage(step), a, barrier, {k, static_cast<int>(blockIdx.y) * kTile});
    wpk::copyTensor(ring.stage(step) + kBytesTile, b, barrier, {k, static_cast<int>(blockIdx.x) * kTile});
}

WPK_DEVICE void multiplyStage(float (&acc)[kTile / 2], const Ring& ring, int step)
{
    wpk::waitBarrier(ring.barrier(step), step / kStages & 1);                          // @tiles_awaited
    const wpk::uint64 a = wpk::swizzledDescriptor<128>(ring.stage(step));              // @tile_of_a
    const wpk::uint64 b = wpk::swizzledDescriptor<128>(ring.stage(step) + kBytesTile); // @tile_of_b
    wpk::fenceWgmma();                                                                 // @products_fenced
    WPK_UNROLL
    for (int k = 0; k < kBlockK / 16; ++k)
        wpk::wgmma<wpk::Half>(acc, a + k * 2, b + k * 2, 1);
    wpk::commitWgmma();     // @products_committed
    wpk::waitWgmma<0>(acc); // @products_done
}

WPK_DEVICE void keepPart(const float (&acc)[kTile / 2], float* part)
{
    const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4, column = thread % 4 * 2;
    WPK_UNROLL
    for (int i = 0; i < kTile / 2; i += 2)
    {
        float* const place = part + (row + i % 4 / 2 * 8) * kRow + i / 4 * 8 + column;
        wpk::store(place, wpk::Vector<float, 2>{{acc[i], acc[i + 1]}});
    }
}

// Every block adds its share of the tile, block by block in the same order.
WPK_DEVICE void addParts(const float* part, float* c, int m, int n)
{
    const int blocks = wpk::clusterBlocks();
    for (int i = (wpk::clusterRank() * kThreads + static_cast<int>(threadIdx.x)) * 4; i < kTile * kTile;
        i += blocks * kThreads * 4)
    {
        const int row = static_cast<int>(blockIdx.y) * kTile + i / kTile;
        const int column = static_cast<int>(blockIdx.x) * kTile + i % kTile;
        if (row >= m || column >= n)
            continue;
        const wpk::SharedAddress own = wpk::sharedAddress(part + i / kTile * kRow + i % kTile);
        wpk::Vector<float, 4> sum = wpk::zeroVector<float, 4>();
        for (int block = 0; block < blocks; ++block)
        {
            const wpk::Vector<float, 4> value = wpk::loadCluster<float, 4>(wpk::clusterAddress(own, block));
            for (int j = 0; j < 4; ++j)
                sum[j] += value[j];
        }
        wpk::store(c + row * n + column, sum);
    }
}
} // namespace

WPK_KERNEL(kThreads)
gemm_cluster(
    WPK_GRID_CONSTANT const wpk::TensorMap a, WPK_GRID_CONSTANT const wpk::TensorMap b, int m, int n, int k, float* c)
{
    WPK_SHARED(float, memory);
    const Ring ring{wpk::sharedAddress(memory)};
    const bool first = threadIdx.x == 0;
    const int steps = wpk::ceilDivide(k, kBlockK), share = wpk::ceilDivide(steps, wpk::clusterBlocks());
    const int firstStep = wpk::minOf(wpk::clusterRank() * share, steps);
    const int ownSteps = wpk::minOf(share, steps - firstStep);
    if (first)
    {
        for (int stage = 0; stage < kStages; ++stage)
            wpk::initBarrier(ring.barrier(stage), 1); // @arrivals_expected
        wpk::fenceBarrierInit();
        for (int step = 0; step < wpk::minOf(kStages, ownSteps); ++step)
            request(ring, &a, &b, step, firstStep);
    }
    __syncthreads(); // @barriers_there
    float acc[kTile / 2] = {};
    for (int step = 0; step < ownSteps; ++step)
    {
        multiplyStage(acc, ring, step);
        __syncthreads(); // @stage_read: all have read the stage
        if (first && step + kStages < ownSteps)
            request(ring, &a, &b, step + kStages, firstStep);
    }
    keepPart(acc, memory); // @part_kept
    wpk::syncCluster();    // @parts_there
    addParts(memory, c, m, n);
    wpk::syncCluster(); // @parts_read: nobody ends while others read
}
WPK_EXPORT(gemm_cluster)
