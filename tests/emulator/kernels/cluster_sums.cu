// Ways for the blocks of a cluster to add what each of them has: y[i] = sum over blocks of x[block][i].
#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/cluster_copy.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/copies/vector.cuh>

namespace
{
constexpr int kThreads = 64, kValues = 256; // of a block

struct Place
{
    int rank, blocks, thread;
    const float* x;
    float* y;
    WPK_DEVICE Place(const float* values, float* sums)
        : rank(wpk::clusterRank()),
          blocks(wpk::clusterBlocks()),
          thread(static_cast<int>(threadIdx.x)),
          x(values + static_cast<int>(blockIdx.x) * kValues),
          y(sums + static_cast<int>(blockIdx.x) / wpk::clusterBlocks() * kValues)
    {
    }
};

WPK_DEVICE void addTo(wpk::Vector<float, 4>& sum, const wpk::Vector<float, 4>& value)
{
    for (int i = 0; i < 4; ++i)
        sum[i] += value[i];
}
} // namespace

// Each block reads its share of the sums from all others.
WPK_KERNEL(kThreads) sum_by_loads(const float* x, float* y)
{
    WPK_SHARED(float, memory);
    const Place place(x, y);
    wpk::store(memory + place.thread * 4, wpk::load<float, 4>(place.x + place.thread * 4));
    wpk::syncCluster();
    for (int i = place.rank * kThreads + place.thread; i < kValues / 4; i += place.blocks * kThreads)
    {
        wpk::Vector<float, 4> sum = wpk::zeroVector<float, 4>();
        for (int block = 0; block < place.blocks; ++block)
            addTo(sum, wpk::loadCluster<float, 4>(wpk::clusterAddress(wpk::sharedAddress(memory + i * 4), block)));
        wpk::store(place.y + i * 4, sum);
    }
    wpk::syncCluster(); // nobody ends while others read
}
WPK_EXPORT(sum_by_loads)

// Each block writes its part into block 0, which waits for an arrival of every thread.
WPK_KERNEL(kThreads) sum_by_stores(const float* x, float* y)
{
    WPK_SHARED(float, memory);
    const Place place(x, y);
    const wpk::SharedAddress barrier = wpk::sharedAddress(memory + place.blocks * kValues);
    if (place.thread == 0)
    {
        wpk::initBarrier(barrier, place.blocks * kThreads); // @arrivals_expected
        wpk::fenceBarrierInit();
    }
    wpk::syncCluster();
    const int own = place.rank * kValues + place.thread * 4;
    wpk::storeCluster(
        wpk::clusterAddress(wpk::sharedAddress(memory + own), 0), wpk::load<float, 4>(place.x + place.thread * 4));
    wpk::arriveBarrier(wpk::clusterAddress(barrier, 0)); // @thread_arrived
    if (place.rank == 0)
    {
        wpk::waitBarrierOfCluster(barrier, 0);
        wpk::Vector<float, 4> sum = wpk::zeroVector<float, 4>();
        for (int block = 0; block < place.blocks; ++block)
            addTo(sum, wpk::load<float, 4>(memory + block * kValues + place.thread * 4));
        wpk::store(place.y + place.thread * 4, sum);
    }
}
WPK_EXPORT(sum_by_stores)

// The same without arrivals: the barrier of block 0 counts the bytes.
WPK_KERNEL(kThreads) sum_by_async_stores(const float* x, float* y)
{
    WPK_SHARED(float, memory);
    const Place place(x, y);
    const wpk::SharedAddress barrier = wpk::sharedAddress(memory + place.blocks * kValues);
    if (place.thread == 0)
    {
        wpk::initBarrier(barrier, 1);
        wpk::fenceBarrierInit();
        wpk::arriveExpectBytes(barrier, place.blocks * kValues * 4);
    }
    wpk::syncCluster();
    const int own = place.rank * kValues + place.thread * 4;
    wpk::storeAsync(wpk::clusterAddress(wpk::sharedAddress(memory + own), 0),
        wpk::load<float, 4>(place.x + place.thread * 4), wpk::clusterAddress(barrier, 0));
    if (place.rank == 0)
    {
        wpk::waitBarrierOfCluster(barrier, 0);
        wpk::Vector<float, 4> sum = wpk::zeroVector<float, 4>();
        for (int block = 0; block < place.blocks; ++block)
            addTo(sum, wpk::load<float, 4>(memory + block * kValues + place.thread * 4));
        wpk::store(place.y + place.thread * 4, sum);
    }
}
WPK_EXPORT(sum_by_async_stores)

// Each block copies its part as a whole into block 0; the part lies behind the parts and the barrier.
WPK_KERNEL(kThreads) sum_by_copies(const float* x, float* y)
{
    WPK_SHARED(float, memory);
    const Place place(x, y);
    const wpk::SharedAddress barrier = wpk::sharedAddress(memory + place.blocks * kValues);
    float* const part = memory + place.blocks * kValues + 4;
    if (place.thread == 0)
    {
        wpk::initBarrier(barrier, 1);
        wpk::fenceBarrierInit();
        wpk::arriveExpectBytes(barrier, place.blocks * kValues * 4);
    }
    wpk::store(part + place.thread * 4, wpk::load<float, 4>(place.x + place.thread * 4));
    wpk::fenceAsyncProxy(); // @part_fenced
    wpk::syncCluster();
    if (place.thread == 0)
    {
        wpk::copyToBlock(wpk::clusterAddress(wpk::sharedAddress(memory + place.rank * kValues), 0),
            wpk::sharedAddress(part), kValues * 4, wpk::clusterAddress(barrier, 0));
    }
    if (place.rank == 0)
    {
        wpk::waitBarrierOfCluster(barrier, 0);
        wpk::Vector<float, 4> sum = wpk::zeroVector<float, 4>();
        for (int block = 0; block < place.blocks; ++block)
            addTo(sum, wpk::load<float, 4>(memory + block * kValues + place.thread * 4));
        wpk::store(place.y + place.thread * 4, sum);
    }
    wpk::syncCluster(); // @part_read: a block's part is read until block 0 has waited
}
WPK_EXPORT(sum_by_copies)

// Each block adds into block 0, in whatever order.
WPK_KERNEL(kThreads) sum_by_adding(const float* x, float* y)
{
    WPK_SHARED(float, memory);
    const Place place(x, y);
    wpk::store(memory + place.thread * 4, wpk::zeroVector<float, 4>());
    wpk::syncCluster();
    for (int i = 0; i < 4; ++i)
    {
        const int at = place.thread * 4 + i;
        wpk::addCluster(wpk::clusterAddress(wpk::sharedAddress(memory + at), 0), place.x[at]);
    }
    wpk::syncCluster();
    if (place.rank == 0)
        wpk::store(place.y + place.thread * 4, wpk::load<float, 4>(memory + place.thread * 4));
}
WPK_EXPORT(sum_by_adding)
