// Tensor copies (TMA, sm_90): one thread copies a whole box of a tensor into shared memory, or out of it.
//
// Copies into shared memory end when `barrier` (mbarrier.cuh), which lies in the same block as the target, has
// counted their bytes; the thread that starts them announces the bytes with arriveExpectBytes, before or after.
// Copies out of shared memory end in groups of the thread that starts them. Both run beside the threads: what
// threads have written to shared memory is read by them only behind fenceAsyncProxy.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Describes a tensor in global memory and the box that one copy moves; a kernel takes it as
// `WPK_GRID_CONSTANT const TensorMap`. On the GPU it is the opaque CUtensorMap that the driver encodes.
#if WPK_ON_GPU
struct alignas(64) TensorMap
{
    uint64 opaque[16];
};
#else
struct alignas(64) TensorMap
{
    const void* base;
    int64 extents[5]; // in elements, innermost first
    int64 strides[4]; // in bytes, of dimensions 1.. (the innermost is dense)
    int16 box[5];     // in elements, innermost first; in im2col mode channels and pixels
    // In im2col mode, of W, H, D: where the first window begins, the last one counted from the tensor's last
    // pixel, and the way from one to the next.
    int16 lower[3], upper[3];
    uint8 steps[3];
    uint8 rank, elementBytes;
    uint8 swizzle; // 0, 32, 64 or 128 bytes
    uint8 im2col;  // 0 or 1
    uint8 toTf32;  // 0 or 1: loads round fp32 elements
};
static_assert(sizeof(TensorMap) == 128);
#endif

// The tensor maps of a launch; they lie among the kernel's parameters.
template <int N>
struct TensorMaps
{
    const TensorMap* at[N];
};

// Orders what this thread has written to shared memory before what asynchronous copies and wgmma read there
// later: threads write, each calls this, they meet at a barrier, then one starts the copy or all multiply.
WPK_DEVICE void fenceAsyncProxy()
{
#if WPK_ON_GPU
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_proxy_fence();
#endif
}

// Brings a tensor map near before its first use.
WPK_DEVICE void prefetchTensorMap(const TensorMap* map)
{
#if WPK_ON_GPU
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
#endif
}

#if WPK_ON_GPU
namespace detail
{

// Operands: 0 target, 1 map, 2 barrier, from 3 on the coordinates, then the offsets or the mask.
#define WPK_COORDINATES_1 "{%3}"
#define WPK_COORDINATES_2 "{%3, %4}"
#define WPK_COORDINATES_3 "{%3, %4, %5}"
#define WPK_COORDINATES_4 "{%3, %4, %5, %6}"
#define WPK_COORDINATES_5 "{%3, %4, %5, %6, %7}"
#define WPK_VALUES_OF_1(c) "r"(c[0])
#define WPK_VALUES_OF_2(c) WPK_VALUES_OF_1(c), "r"(c[1])
#define WPK_VALUES_OF_3(c) WPK_VALUES_OF_2(c), "r"(c[2])
#define WPK_VALUES_OF_4(c) WPK_VALUES_OF_3(c), "r"(c[3])
#define WPK_VALUES_OF_5(c) WPK_VALUES_OF_4(c), "r"(c[4])

#define WPK_BOX_COPIES(RANK, MASK)                                                                                     \
    WPK_DEVICE void copyBox(                                                                                           \
        SharedAddress target, const TensorMap* map, SharedAddress barrier, const int(&coordinates)[RANK])              \
    {                                                                                                                  \
        asm volatile("cp.async.bulk.tensor." #RANK                                                                     \
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, " WPK_COORDINATES_##RANK   \
            "], [%2];" ::"r"(target),                                                                                  \
            "l"(map), "r"(barrier), WPK_VALUES_OF_##RANK(coordinates)                                                  \
            : "memory");                                                                                               \
    }                                                                                                                  \
    WPK_DEVICE void copyBoxToBlocks(SharedAddress target, const TensorMap* map, SharedAddress barrier,                 \
        const int(&coordinates)[RANK], uint16 blocks)                                                                  \
    {                                                                                                                  \
        asm volatile("cp.async.bulk.tensor." #RANK                                                                     \
                     "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"                   \
                     " [%0], [%1, " WPK_COORDINATES_##RANK "], [%2], %" MASK ";" ::"r"(target),                        \
            "l"(map), "r"(barrier), WPK_VALUES_OF_##RANK(coordinates), "h"(blocks)                                     \
            : "memory");                                                                                               \
    }                                                                                                                  \
    WPK_DEVICE void storeBox(const TensorMap* map, const int(&coordinates)[RANK], SharedAddress source)                \
    {                                                                                                                  \
        asm volatile("cp.async.bulk.tensor." #RANK "d.global.shared::cta.tile.bulk_group [%1, " WPK_COORDINATES_##RANK \
            "], [%0];" ::"r"(source),                                                                                  \
            "l"(map), "r"(0), WPK_VALUES_OF_##RANK(coordinates)                                                        \
            : "memory");                                                                                               \
    }
WPK_BOX_COPIES(1, "4")
WPK_BOX_COPIES(2, "5")
WPK_BOX_COPIES(3, "6")
WPK_BOX_COPIES(4, "7")
WPK_BOX_COPIES(5, "8")
#undef WPK_BOX_COPIES

#define WPK_PIXEL_COPIES(RANK, OFFSETS, MASK, ...)                                                                     \
    WPK_DEVICE void copyPixelBox(SharedAddress target, const TensorMap* map, SharedAddress barrier,                    \
        const int(&coordinates)[RANK], const uint16(&taps)[RANK - 2])                                                  \
    {                                                                                                                  \
        asm volatile("cp.async.bulk.tensor." #RANK                                                                     \
                     "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, " WPK_COORDINATES_##RANK \
            "], [%2], " OFFSETS ";" ::"r"(target),                                                                     \
            "l"(map), "r"(barrier), WPK_VALUES_OF_##RANK(coordinates), __VA_ARGS__                                     \
            : "memory");                                                                                               \
    }                                                                                                                  \
    WPK_DEVICE void copyPixelBoxToBlocks(SharedAddress target, const TensorMap* map, SharedAddress barrier,            \
        const int(&coordinates)[RANK], const uint16(&taps)[RANK - 2], uint16 blocks)                                   \
    {                                                                                                                  \
        asm volatile("cp.async.bulk.tensor." #RANK                                                                     \
                     "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster"                 \
                     " [%0], [%1, " WPK_COORDINATES_##RANK "], [%2], " OFFSETS ", %" MASK ";" ::"r"(target),           \
            "l"(map), "r"(barrier), WPK_VALUES_OF_##RANK(coordinates), __VA_ARGS__, "h"(blocks)                        \
            : "memory");                                                                                               \
    }
WPK_PIXEL_COPIES(3, "{%6}", "7", "h"(taps[0]))
WPK_PIXEL_COPIES(4, "{%7, %8}", "9", "h"(taps[0]), "h"(taps[1]))
WPK_PIXEL_COPIES(5, "{%8, %9, %10}", "11", "h"(taps[0]), "h"(taps[1]), "h"(taps[2]))
#undef WPK_PIXEL_COPIES

} // namespace detail
#endif

// Starts the copy of the box at `coordinates` (1 to 5 of them, innermost first) to shared `target`. The first one
// is a whole number of 16 bytes: hardware takes others for an illegal instruction. Elements outside the tensor
// arrive as zero and count as well. The box lies densely in shared memory, innermost dimension first. With a
// swizzle of 32, 64 or 128 bytes its rows have just that length, and of the place of every 16 bytes, bits 4.. (one,
// two or three) are exclusive-ored with bits 7... The target is aligned to 128 bytes, with a swizzle to eight times
// its bytes. Where the map says so, fp32 elements arrive as the nearest tf32 numbers (wpk.launch.TensorMapArgument).
template <int Rank>
WPK_DEVICE void copyTensor(
    SharedAddress target, const TensorMap* map, SharedAddress barrier, const int (&coordinates)[Rank])
{
#if WPK_ON_GPU
    detail::copyBox(target, map, barrier, coordinates);
#else
    wpk_emulator_tensor_copy(target, map, barrier, coordinates, Rank, nullptr, 0);
#endif
}

// The same copy as a multicast: to every block of the cluster whose bit is set in `blocks`, there to the same place,
// and counted by the barrier at the same place.
template <int Rank>
WPK_DEVICE void copyTensorToBlocks(
    SharedAddress target, const TensorMap* map, SharedAddress barrier, const int (&coordinates)[Rank], uint16 blocks)
{
#if WPK_ON_GPU
    detail::copyBoxToBlocks(target, map, barrier, coordinates, blocks);
#else
    wpk_emulator_tensor_copy(target, map, barrier, coordinates, Rank, nullptr, blocks);
#endif
}

// Starts the copy of as many pixels as the map says (im2col mode, wpk.launch.Im2col): a row of the box is the
// channels of a pixel, from coordinates[0] on. The first window begins at the pixel given by the other
// coordinates (W, H, D as far as the tensor has them, image), the following ones along W, then H, D, images,
// where the map lets windows begin; of each the copy takes the pixel at `taps` (W, H, D) from its beginning.
template <int Rank>
WPK_DEVICE void copyPixels(SharedAddress target, const TensorMap* map, SharedAddress barrier,
    const int (&coordinates)[Rank], const uint16 (&taps)[Rank - 2])
{
#if WPK_ON_GPU
    detail::copyPixelBox(target, map, barrier, coordinates, taps);
#else
    wpk_emulator_tensor_copy(target, map, barrier, coordinates, Rank, taps, 0);
#endif
}

template <int Rank>
WPK_DEVICE void copyPixelsToBlocks(SharedAddress target, const TensorMap* map, SharedAddress barrier,
    const int (&coordinates)[Rank], const uint16 (&taps)[Rank - 2], uint16 blocks)
{
#if WPK_ON_GPU
    detail::copyPixelBoxToBlocks(target, map, barrier, coordinates, taps, blocks);
#else
    wpk_emulator_tensor_copy(target, map, barrier, coordinates, Rank, taps, blocks);
#endif
}

// Starts the copy of `bytes` from global `source`, without a tensor map; all three are multiples of 16.
WPK_DEVICE void copyBulk(SharedAddress target, const void* source, int bytes, SharedAddress barrier)
{
#if WPK_ON_GPU
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(target),
        "l"(source), "r"(bytes), "r"(barrier)
        : "memory");
#else
    wpk_emulator_bulk_copy(target, source, bytes, barrier);
#endif
}

// Starts the copy of a box from shared `source`, laid out as copyTensor lays it out, to the tensor; elements
// outside it are dropped. Behind fenceAsyncProxy.
template <int Rank>
WPK_DEVICE void storeTensor(const TensorMap* map, const int (&coordinates)[Rank], SharedAddress source)
{
#if WPK_ON_GPU
    detail::storeBox(map, coordinates, source);
#else
    wpk_emulator_tensor_store(map, coordinates, Rank, source);
#endif
}

// Closes the group of this thread's storeTensor since the last commit.
WPK_DEVICE void commitStores()
{
#if WPK_ON_GPU
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_commit_stores();
#endif
}

// Waits until of this thread's groups at most the N youngest still read shared memory, which then may be written
// again. A thread waits for all of them before it ends.
template <int N>
WPK_DEVICE void waitStores()
{
#if WPK_ON_GPU
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_wait_stores(N);
#endif
}

} // namespace wpk
