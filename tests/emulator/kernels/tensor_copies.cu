// Tensor copies into shared memory, whose raw bytes are then shown; and out of it.
#include <wpk/kernels/barriers/cluster.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/copies/vector.cuh>

namespace
{
// The barrier lies behind the bytes, which are a multiple of 128.
WPK_DEVICE wpk::SharedAddress prepare(wpk::SharedAddress shared, int bytes)
{
    const wpk::SharedAddress barrier = shared + bytes;
    if (threadIdx.x == 0)
    {
        wpk::initBarrier(barrier, 1);
        wpk::fenceBarrierInit();
    }
    return barrier;
}

WPK_DEVICE void show(const unsigned char* memory, unsigned char* y, int bytes)
{
    for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += static_cast<int>(blockDim.x) * 16)
        wpk::store(y + i, wpk::load<unsigned char, 16>(memory + i));
}

template <int Rank>
WPK_DEVICE void copyBox(const wpk::TensorMap* map, unsigned char* y, int bytes, const int (&coordinates)[Rank])
{
    WPK_SHARED(unsigned char, memory);
    const wpk::SharedAddress shared = wpk::sharedAddress(memory), barrier = prepare(shared, bytes);
    __syncthreads();
    if (threadIdx.x == 0)
    {
        wpk::prefetchTensorMap(map);
        wpk::arriveExpectBytes(barrier, bytes);
        wpk::copyTensor(shared, map, barrier, coordinates);
    }
    wpk::waitBarrier(barrier, 0);
    show(memory, y, bytes);
}

template <int Rank>
WPK_DEVICE void copyWindow(const wpk::TensorMap* map, unsigned char* y, int bytes, const int (&coordinates)[Rank],
    const wpk::uint16 (&taps)[Rank - 2])
{
    WPK_SHARED(unsigned char, memory);
    const wpk::SharedAddress shared = wpk::sharedAddress(memory), barrier = prepare(shared, bytes);
    __syncthreads();
    if (threadIdx.x == 0)
    {
        wpk::copyPixels(shared, map, barrier, coordinates, taps);
        wpk::arriveExpectBytes(barrier, bytes);
    }
    wpk::waitBarrier(barrier, 0);
    show(memory, y, bytes);
}
} // namespace

WPK_KERNEL(64) copy_box_1(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int a)
{
    copyBox(&map, y, bytes, {a});
}
WPK_EXPORT(copy_box_1)

WPK_KERNEL(64) copy_box_2(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int a, int b)
{
    copyBox(&map, y, bytes, {a, b}); // @box_copied
}
WPK_EXPORT(copy_box_2)

WPK_KERNEL(64)
copy_box_3(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int a, int b, int c)
{
    copyBox(&map, y, bytes, {a, b, c});
}
WPK_EXPORT(copy_box_3)

WPK_KERNEL(64)
copy_box_4(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int a, int b, int c, int d)
{
    copyBox(&map, y, bytes, {a, b, c, d});
}
WPK_EXPORT(copy_box_4)

WPK_KERNEL(64)
copy_box_5(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int a, int b, int c, int d, int e)
{
    copyBox(&map, y, bytes, {a, b, c, d, e});
}
WPK_EXPORT(copy_box_5)

WPK_KERNEL(64)
copy_pixels_3(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int c, int w, int n, int s)
{
    copyWindow(&map, y, bytes, {c, w, n}, {static_cast<wpk::uint16>(s)});
}
WPK_EXPORT(copy_pixels_3)

WPK_KERNEL(64)
copy_pixels_4(
    WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int c, int w, int h, int n, int s, int r)
{
    copyWindow(&map, y, bytes, {c, w, h, n}, {static_cast<wpk::uint16>(s), static_cast<wpk::uint16>(r)});
}
WPK_EXPORT(copy_pixels_4)

WPK_KERNEL(64)
copy_pixels_5(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int c, int w, int h, int d,
    int n, int s, int r, int q)
{
    copyWindow(&map, y, bytes, {c, w, h, d, n},
        {static_cast<wpk::uint16>(s), static_cast<wpk::uint16>(r), static_cast<wpk::uint16>(q)});
}
WPK_EXPORT(copy_pixels_5)

// Each block of a cluster copies its own box to all, and shows what all have copied.
WPK_KERNEL(64) copy_to_blocks(WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int rows)
{
    WPK_SHARED(unsigned char, memory);
    const int rank = wpk::clusterRank(), blocks = wpk::clusterBlocks();
    const wpk::SharedAddress shared = wpk::sharedAddress(memory), barrier = prepare(shared, blocks * bytes);
    wpk::syncCluster();
    if (threadIdx.x == 0)
    {
        wpk::arriveExpectBytes(barrier, blocks * bytes);
        const wpk::uint16 all = static_cast<wpk::uint16>((1 << blocks) - 1);
        wpk::copyTensorToBlocks(shared + rank * bytes, &map, barrier, {0, static_cast<int>(blockIdx.x) * rows}, all);
    }
    wpk::waitBarrier(barrier, 0);
    show(memory, y + static_cast<int>(blockIdx.x) * blocks * bytes, blocks * bytes);
    wpk::syncCluster();
}
WPK_EXPORT(copy_to_blocks)

// Bytes of global memory through shared memory and back to where a box lies.
WPK_KERNEL(64)
store_box(WPK_GRID_CONSTANT const wpk::TensorMap map, const unsigned char* x, int bytes, int a, int b)
{
    WPK_SHARED(unsigned char, memory);
    for (int i = static_cast<int>(threadIdx.x) * 16; i < bytes; i += 64 * 16)
        wpk::store(memory + i, wpk::load<unsigned char, 16>(x + i));
    wpk::fenceAsyncProxy(); // @box_fenced
    __syncthreads();
    if (threadIdx.x == 0)
    {
        wpk::storeTensor(&map, {a, b}, wpk::sharedAddress(memory));
        wpk::commitStores();
        wpk::waitStores<0>(); // @store_read
    }
}
WPK_EXPORT(store_box)

WPK_KERNEL(64) copy_bulk(const unsigned char* x, unsigned char* y, int bytes)
{
    WPK_SHARED(unsigned char, memory);
    const wpk::SharedAddress shared = wpk::sharedAddress(memory), barrier = prepare(shared, bytes);
    __syncthreads();
    if (threadIdx.x == 0)
    {
        wpk::arriveExpectBytes(barrier, bytes);
        wpk::copyBulk(shared, x, bytes, barrier);
    }
    wpk::waitBarrier(barrier, 0); // @copy_awaited
    show(memory, y, bytes);
}
WPK_EXPORT(copy_bulk)

// The same with pixels: block r copies those of the window r, and shows what both have copied.
WPK_KERNEL(64)
copy_pixels_to_blocks(
    WPK_GRID_CONSTANT const wpk::TensorMap map, unsigned char* y, int bytes, int w, int h, int n, int s, int r)
{
    WPK_SHARED(unsigned char, memory);
    const int rank = wpk::clusterRank();
    const wpk::SharedAddress shared = wpk::sharedAddress(memory), barrier = prepare(shared, 2 * bytes);
    wpk::syncCluster();
    if (threadIdx.x == 0)
    {
        wpk::arriveExpectBytes(barrier, 2 * bytes);
        wpk::copyPixelsToBlocks(shared + rank * bytes, &map, barrier, {0, w + rank, h, n},
            {static_cast<wpk::uint16>(s), static_cast<wpk::uint16>(r)}, 3);
    }
    wpk::waitBarrier(barrier, 0);
    show(memory, y + rank * 2 * bytes, 2 * bytes);
    wpk::syncCluster();
}
WPK_EXPORT(copy_pixels_to_blocks)
