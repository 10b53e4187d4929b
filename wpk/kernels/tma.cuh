// Tensor copies (TMA, sm_90): one thread copies a whole box of a tensor into shared memory.
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
    int32 box[5];     // in elements, innermost first
    int32 rank, elementBytes;
    int32 swizzle; // 0, 32, 64 or 128 bytes
};
static_assert(sizeof(TensorMap) == 128);
#endif

// Starts the copy of the box at `coordinates` (innermost first) to shared `target`, and lets `barrier`
// count its bytes. Elements outside the tensor arrive as zero and count as well. The box lies densely in
// shared memory, innermost dimension first; with a swizzle of 2^(4 + s) bytes, bits 4..4+s-1 of an
// address are exclusive-ored with bits 7..7+s-1. The target is aligned to 128 bytes, with a swizzle to
// eight times its bytes.
WPK_DEVICE void copyTensor(
    SharedAddress target, const TensorMap* map, SharedAddress barrier, const int (&coordinates)[2])
{
#if WPK_ON_GPU
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4}], [%2];" ::"r"(target),
        "l"(map), "r"(barrier), "r"(coordinates[0]), "r"(coordinates[1])
        : "memory");
#else
    wpk_emulator_tensor_copy(target, map, barrier, coordinates, 2);
#endif
}

WPK_DEVICE void copyTensor(
    SharedAddress target, const TensorMap* map, SharedAddress barrier, const int (&coordinates)[4])
{
#if WPK_ON_GPU
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%3, %4, %5, %6}], [%2];" ::"r"(target),
        "l"(map), "r"(barrier), "r"(coordinates[0]), "r"(coordinates[1]), "r"(coordinates[2]), "r"(coordinates[3])
        : "memory");
#else
    wpk_emulator_tensor_copy(target, map, barrier, coordinates, 4);
#endif
}

} // namespace wpk
