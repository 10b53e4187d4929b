// Products of two tiles of whole rows (sm_90a): what attention and feed-forward blocks have in common. The first one's
// sums become the left factor of the second one where they are, in registers.
#pragma once

#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace wpk
{

// The narrowest swizzle that holds a row of so many elements of 16 bits, or 128 bytes.
template <int Columns>
inline constexpr int kWidestSwizzle = Columns <= 16   ? 32
                                      : Columns <= 32 ? 64
                                                      : 128;

// The widest one whose boxes end with the fewest zeros behind a row: none behind whole slices of 16 with 32 bytes.
template <int Columns, int Slices = (Columns + 15) / 16>
inline constexpr int kTightSwizzle = Slices % 4 == 0   ? 128
                                     : Slices % 2 == 0 ? 64
                                                       : 32;

// Rows of 16-bit elements as TMA brings them: boxes side by side, whose rows are those of the swizzle, in bytes; what
// follows the last column of the last box are zeros.
template <int Rows, int Columns, int Swizzle = kWidestSwizzle<Columns>>
struct BoxedRows
{
    static constexpr int swizzle = Swizzle;
    static constexpr int boxColumns = swizzle / 2, boxes = ceilDivide(Columns, boxColumns);
    static constexpr int boxBytes = Rows * swizzle;
    static constexpr int copiedBytes = boxes * boxBytes;
    static constexpr int bytes = ceilDivide(copiedBytes, 1024) * 1024; // what follows is aligned as all boxes are
    static constexpr int slices = ceilDivide(Columns, 16);             // of a product along the columns

    // Of a product along the columns: its descriptor advances by slices of 32 bytes, which are counted in 16s.
    static WPK_DEVICE uint64 along(SharedAddress tile)
    {
        return swizzledDescriptor<swizzle>(tile);
    }
    static WPK_DEVICE constexpr int sliceAlong(int slice)
    {
        return (slice * 32 / swizzle * boxBytes + slice * 32 % swizzle) / 16; // @slice_along
    }

    // Of a product across them, whose slices are 16 rows.
    static WPK_DEVICE uint64 across(SharedAddress tile)
    {
        return matrixDescriptor<swizzle>(tile, boxBytes, 8 * swizzle);
    }
    static WPK_DEVICE constexpr int sliceAcross(int slice)
    {
        return slice * 16 * swizzle / 16; // @slice_across
    }

    // Asks for the rows from `row` on, of the matrix that `places` say of the map.
    template <class... Places>
    static WPK_DEVICE void copy(
        SharedAddress tile, const TensorMap* map, SharedAddress barrier, int row, Places... places)
    {
        WPK_UNROLL
        for (int box = 0; box < boxes; ++box)
            copyTensor(tile + box * boxBytes, map, barrier, {box * boxColumns, row, places...});
    }
};

// sums = A B^T of the 64 rows of A that begin there. Behind a fence; in front of a commit.
template <class T, class A, class B, int Count>
WPK_DEVICE void multiplyAlong(float (&sums)[Count], SharedAddress rowsA, SharedAddress tileB)
{
    const uint64 a = A::along(rowsA);
    const uint64 b = B::along(tileB);
    WPK_UNROLL
    for (int slice = 0; slice < B::slices; ++slice)
        wgmma<T>(sums, a + A::sliceAlong(slice), b + B::sliceAlong(slice), slice > 0 ? 1 : 0);
}

// sums += A B of the fragments of A, which are not written before the products have ended; with `accumulate` 0 the old
// sums are ignored. As the other one.
template <class T, class B, int Count, int Slices>
WPK_DEVICE void multiplyAcross(
    float (&sums)[Count], const uint32 (&a)[Slices][4], SharedAddress tileB, int accumulate = 1)
{
    const uint64 b = B::across(tileB);
    WPK_UNROLL
    for (int slice = 0; slice < Slices; ++slice)
        wgmma<T, Major::mn>(sums, a[slice], b + B::sliceAcross(slice), slice > 0 ? 1 : accumulate);
}

} // namespace wpk
