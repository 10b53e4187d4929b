// What a tensor map says: which elements a tensor copy moves, and where they lie in shared memory (PTX ISA,
// "Tensors": bounding boxes, im2col mode, swizzling modes).
#include <cstring>

#include <wpk/kernels/copies/tma.cuh>

#include "early_launch.h"

namespace wpk::emulator
{

namespace
{

int rowsOf(const TensorMap& map)
{
    if (map.im2col)
        return map.box[1];
    int rows = 1;
    for (int d = 1; d < map.rank; ++d)
        rows *= map.box[d];
    return rows;
}

int rowBytes(const TensorMap& map)
{
    return map.box[0] * map.elementBytes;
}

// Start of a row of the tensor whose outer coordinates are `at`; null outside the tensor.
char* rowAt(const TensorMap& map, const int64* at)
{
    char* row = static_cast<char*>(const_cast<void*>(map.base));
    for (int d = 1; d < map.rank; ++d)
    {
        if (at[d] < 0 || at[d] >= map.extents[d])
            return nullptr;
        row += at[d] * map.strides[d - 1];
    }
    return row;
}

// Row `row` of a box that begins at `coordinates`.
char* boxRow(const TensorMap& map, const int* coordinates, int row)
{
    int64 at[5] = {};
    for (int d = 1; d < map.rank; ++d)
    {
        at[d] = coordinates[d] + row % map.box[d];
        row /= map.box[d];
    }
    return rowAt(map, at);
}

// Goes to the next pixel where a window may begin: along W, then H, then D, then to the next image.
void nextPixel(const TensorMap& map, int64* at)
{
    const int spatial = map.rank - 2;
    for (int d = 0; d < spatial; ++d)
    {
        at[d + 1] += map.steps[d];
        if (at[d + 1] <= map.extents[d + 1] - 1 + map.upper[d])
            return;
        at[d + 1] = map.lower[d];
    }
    at[spatial + 1]++;
}

// Where 16 bytes lie that would be at `place` without swizzle.
uint32 swizzled(const TensorMap& map, uint32 place)
{
    const uint32 mask = map.swizzle == 0 ? 0 : static_cast<uint32>(map.swizzle) / 16 - 1;
    return place ^ (place >> 7 & mask) << 4;
}

// As the GPU's copies round to tf32: to nearest, ties to even; infinities and what is no number stay.
void roundToTf32(char* element)
{
    uint32 bits;
    memcpy(&bits, element, 4);
    if ((bits & 0x7f800000u) != 0x7f800000u)
        bits = (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
    memcpy(element, &bits, 4);
}

// One row between the tensor and swizzled shared memory at `place`; a load writes zero where the tensor ends.
void moveRow(const TensorMap& map, char* row, int64 column, char* shared, uint32 place, bool isStore)
{
    const int size = map.elementBytes;
    for (int chunk = 0; chunk < rowBytes(map); chunk += 16)
    {
        char* const inside = shared + swizzled(map, place + static_cast<uint32>(chunk));
        for (int byte = 0; byte < 16; byte += size)
        {
            const int64 at = column + (chunk + byte) / size;
            const bool exists = row != nullptr && at >= 0 && at < map.extents[0];
            if (exists && isStore)
                memcpy(row + at * size, inside + byte, static_cast<size_t>(size));
            else if (exists)
                memcpy(inside + byte, row + at * size, static_cast<size_t>(size));
            else if (!isStore)
                memset(inside + byte, 0, static_cast<size_t>(size));
            if (map.toTf32 && !isStore)
                roundToTf32(inside + byte);
        }
    }
}

void loadPixels(const TensorMap& map, const AsyncWrite& write, char* shared, uint32 place)
{
    int64 pixel[5];
    for (int d = 0; d < map.rank; ++d)
        pixel[d] = write.coordinates[d];
    for (int row = 0; row < rowsOf(map); ++row, place += static_cast<uint32>(rowBytes(map)))
    {
        int64 at[5];
        memcpy(at, pixel, sizeof at);
        for (int d = 0; d < map.rank - 2; ++d)
            at[d + 1] += write.offsets[d];
        moveRow(map, rowAt(map, at), pixel[0], shared, place, false);
        nextPixel(map, pixel);
    }
}

} // namespace

size_t boxBytes(const void* map)
{
    const TensorMap& layout = *static_cast<const TensorMap*>(map);
    return static_cast<size_t>(rowBytes(layout)) * static_cast<size_t>(rowsOf(layout));
}

void loadBox(const AsyncWrite& write, RunningBlock& block)
{
    const TensorMap& map = write.map;
    uint32 place = static_cast<uint32>(write.target - reinterpret_cast<unsigned long>(block.shared));
    if (map.im2col)
        return loadPixels(map, write, block.shared, place);
    for (int row = 0; row < rowsOf(map); ++row, place += static_cast<uint32>(rowBytes(map)))
        moveRow(map, boxRow(map, write.coordinates, row), write.coordinates[0], block.shared, place, false);
}

void storeBox(const AsyncStore& store, RunningBlock& block)
{
    const TensorMap& map = *static_cast<const TensorMap*>(store.map);
    uint32 place = static_cast<uint32>(store.source - reinterpret_cast<unsigned long>(block.shared));
    for (int row = 0; row < rowsOf(map); ++row, place += static_cast<uint32>(rowBytes(map)))
        moveRow(map, boxRow(map, store.coordinates, row), store.coordinates[0], block.shared, place, true);
}

void checkBox(const void* map, const int* coordinates, int rank, bool im2col, unsigned long shared, const char* what)
{
    const TensorMap& layout = *static_cast<const TensorMap*>(map);
    const int bytes = rowBytes(layout);
    const uint32 alignment = layout.swizzle == 0 ? 128 : static_cast<uint32>(layout.swizzle) * 8;
    uint32 offset;
    if (layout.rank != rank)
        fail("%s: %d coordinates for a map of rank %d", what, rank, int{layout.rank});
    if ((layout.im2col != 0) != im2col)
        fail("%s: the map is %sin im2col mode", what, layout.im2col ? "" : "not ");
    if (isClosed(layout.base))
        fail("%s: memory of the kernels in front is copied before waitForPrevious", what);
    // Where the rows of a swizzled box lie that are shorter than the swizzle is not documented.
    if (bytes % 16 != 0 || (layout.swizzle != 0 && bytes != layout.swizzle))
        fail("%s: rows of %d bytes with a swizzle of %d", what, bytes, int{layout.swizzle});
    if (blockAt(shared, boxBytes(map), &offset) == nullptr)
        fail("%s: the box does not lie in dynamic shared memory", what);
    if (offset % alignment != 0)
        fail("%s: the box in shared memory is not aligned to %u bytes", what, alignment);
    // Not in the documents; an H200 ends the kernel with an illegal instruction.
    if (coordinates[0] * int{layout.elementBytes} % 16 != 0)
        fail("%s: the box begins at element %d of a row, which is no multiple of 16 bytes", what, coordinates[0]);
}

void checkPixels(const void* map, const int* coordinates)
{
    const TensorMap& layout = *static_cast<const TensorMap*>(map);
    for (int d = 0; d < layout.rank - 2; ++d)
    {
        const int64 last = layout.extents[d + 1] - 1 + layout.upper[d];
        if (coordinates[d + 1] < layout.lower[d] || coordinates[d + 1] > last)
            fail("copyPixels: coordinate %d is %d, windows begin at %d to %lld", d + 1, coordinates[d + 1],
                int{layout.lower[d]}, last);
    }
}

} // namespace wpk::emulator
