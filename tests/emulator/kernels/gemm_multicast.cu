// C[M, N] (float) = A[M, K] * B[N, K]^T in half: two blocks of a cluster compute neighbouring 64 x 64 tiles, and each
// copies half of the rows of A that both need to both. One warp copies, a warpgroup multiplies; the tile goes back
// by TMA.
#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/barriers/named_barrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace
{
constexpr int kTile = 64, kBlockK = 64, kStages = 3, kConsumers = 128, kThreads = kConsumers + 32;
constexpr int kBlocks = 2, kRowsOfA = kTile / kBlocks, kBytesTile = kTile * kBlockK * 2;
constexpr int kRowC = 32; // floats: a row of a box with 128-byte swizzle
static_assert(kTile * kTile * 4 <= kStages * 2 * kBytesTile, "the result takes the room of the stages");

// A stage is full when both halves of A and the own tile of B have landed, and empty when the warps of both
// blocks have read it: they read what this block copied to both.
struct Ring
{
    wpk::SharedAddress shared;
    WPK_DEVICE wpk::SharedAddress stage(int step) const
    {
        return shared + step % kStages * 2 * kBytesTile;
    }
    WPK_DEVICE wpk::SharedAddress full(int step) const
    {
        return shared + kStages * 2 * kBytesTile + step % kStages * 16;
    }
    WPK_DEVICE wpk::SharedAddress empty(int step) const
    {
        return full(step) + 8;
    }
};

WPK_DEVICE int parityOf(int step)
{
    return step / kStages & 1;
}

WPK_DEVICE void produce(const Ring& ring, const wpk::TensorMap* a, const wpk::TensorMap* b, int steps)
{
    const int rank = wpk::clusterRank(), row = static_cast<int>(blockIdx.y) * kTile + rank * kRowsOfA;
    for (int step = 0; step < steps; ++step)
    {
        wpk::waitBarrierOfCluster(ring.empty(step), parityOf(step) ^ 1); // @stage_awaited
        const wpk::SharedAddress full = ring.full(step), tileA = ring.stage(step) + rank * kRowsOfA * 128;
        wpk::arriveExpectBytes(full, 2 * kBytesTile);                                       // @bytes_expected
        wpk::copyTensorToBlocks(tileA, a, full, {step * kBlockK, row}, (1 << kBlocks) - 1); // @a_copied
        wpk::copyTensor(ring.stage(step) + kBytesTile, b, full, {step * kBlockK, static_cast<int>(blockIdx.x) * kTile});
    }
}

// A warp has read a stage: one lane tells each block.
WPK_DEVICE void release(const Ring& ring, int step)
{
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (lane < kBlocks)
        wpk::arriveBarrier(wpk::clusterAddress(ring.empty(step), lane)); // @stage_released
}

WPK_DEVICE void consume(float (&acc)[kTile / 2], const Ring& ring, int steps)
{
    for (int step = 0; step < steps; ++step)
    {
        wpk::waitBarrier(ring.full(step), parityOf(step));
        const wpk::uint64 a = wpk::swizzledDescriptor(ring.stage(step));
        const wpk::uint64 b = wpk::swizzledDescriptor(ring.stage(step) + kBytesTile);
        wpk::fenceWgmma();
        WPK_UNROLL
        for (int k = 0; k < kBlockK / 16; ++k)
            wpk::wgmma<wpk::Half>(acc, a + k * 2, b + k * 2, 1);
        wpk::commitWgmma();
        wpk::waitWgmma<1>(); // for those of the step before: these go on while the next stage is waited for
        if (step > 0)
            release(ring, step - 1);
    }
    wpk::waitWgmma<0>(acc);
}

// Two boxes of 32 columns, in whose rows 16-byte pieces are swizzled.
WPK_DEVICE void storeTile(const float (&acc)[kTile / 2], float* tile, const wpk::TensorMap* c)
{
    const int thread = static_cast<int>(threadIdx.x), row = thread / 32 * 16 + thread % 32 / 4;
    WPK_UNROLL
    for (int i = 0; i < kTile / 2; i += 2)
    {
        const int r = row + i % 4 / 2 * 8, column = i / 4 * 8 + thread % 4 * 2, inBox = column % kRowC;
        const int piece = inBox / 4 ^ r % 8;
        wpk::store(tile + (column / kRowC * kTile + r) * kRowC + piece * 4 + inBox % 4,
            wpk::Vector<float, 2>{{acc[i], acc[i + 1]}});
    }
    wpk::fenceAsyncProxy();
    wpk::syncThreads(1, kConsumers); // @tile_written
    if (thread != 0)
        return;
    for (int box = 0; box < kTile / kRowC; ++box)
    {
        const int column = static_cast<int>(blockIdx.x) * kTile + box * kRowC;
        wpk::storeTensor(
            c, {column, static_cast<int>(blockIdx.y) * kTile}, wpk::sharedAddress(tile + box * kTile * kRowC));
    }
    wpk::commitStores();
    wpk::waitStores<0>();
}
} // namespace

WPK_KERNEL(kThreads)
gemm_multicast(WPK_GRID_CONSTANT const wpk::TensorMap a, WPK_GRID_CONSTANT const wpk::TensorMap b,
    WPK_GRID_CONSTANT const wpk::TensorMap c, int k)
{
    WPK_SHARED(float, memory);
    const Ring ring{wpk::sharedAddress(memory)};
    const int steps = wpk::ceilDivide(k, kBlockK);
    if (threadIdx.x == 0)
    {
        for (int stage = 0; stage < kStages; ++stage)
        {
            wpk::initBarrier(ring.full(stage), 1);
            wpk::initBarrier(ring.empty(stage), kBlocks * kConsumers / 32); // @arrivals_expected
        }
        wpk::fenceBarrierInit();
    }
    wpk::syncCluster(); // @barriers_there
    if (threadIdx.x >= kConsumers)
    {
        if (threadIdx.x == kConsumers)
            produce(ring, &a, &b, steps);
        __syncwarp();
    }
    else
    {
        float acc[kTile / 2] = {};
        consume(acc, ring, steps);
        // All have read the stages, and no copy is under way: each that was started is one that was waited for.
        wpk::syncThreads(1, kConsumers); // @stages_read
        storeTile(acc, memory, &c);
    }
    wpk::syncCluster(); // @arrivals_over: the other block still arrives here
}
WPK_EXPORT(gemm_multicast)
