// Convolution by warpgroups over patches that stay in shared memory for all taps (tile_halo.cuh, sm_90a).
//
// Grid: tiles of output pixels of all images, tiles of filters. Problem and Schedule are named by conv_halo.py; maps:
// the input's (channel, w, h, image), the filters' (channel, tap, filter).
#pragma once

#include <wpk/kernels/operands.cuh>
#include <wpk/kernels/tile_halo.cuh>
#include <wpk/kernels/tile_store.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void convHalo(Inputs<2 + Problem::Operands::count> inputs, int n, const TensorMaps<2>& maps, void* y)
{
    using T = typename Problem::Multiply;
    using Shape = HaloShape<T, Problem, Schedule>;
    WPK_SHARED(unsigned char, shared);
    static_cast<void>(n); // the grid has whole images

    const OutputTile<Problem, Schedule> tile(static_cast<int>(blockIdx.x));
    const int firstFilter = static_cast<int>(blockIdx.y) * Shape::blockN;
    const HaloRings<Shape> rings(sharedAddress(shared));
    const bool isProducer = threadIdx.x == Shape::consumers;
    if (isProducer)
    {
        rings.init();
        prefetchTensorMap(maps.at[0]);
        prefetchTensorMap(maps.at[1]);
    }
    __syncwarp();    // the producer's lanes took different ways
    __syncthreads(); // the barriers are there for everyone
    float acc[Shape::accumulators] = {};
    if (warpIndex() < Shape::warpsM)
    {
        multiplyHalo<T, Problem, Schedule>(acc, rings);
    }
    else if (isProducer)
    {
        feedHaloRings<Problem, Shape, Schedule::early != 0>(rings, maps, tile.image,
            tile.p * Problem::stride_h - Problem::pad_h, tile.q * Problem::stride_w - Problem::pad_w, firstFilter);
    }
    __syncwarp();
    __syncthreads(); // the rings are free; and the producer has waited for the kernels in front
    if (warpIndex() < Shape::warpsM)
    {
        float tiles[Shape::tilesM][Shape::tilesN][4];
        memcpy(tiles, acc, sizeof tiles);
        storeTiles<Problem, Shape>(tiles, shared, tile, inputs.at + 2, y, 0, Shape::kPixels, firstFilter, Problem::k,
            Problem::k + Problem::y_padding);
    }
}

} // namespace wpk
