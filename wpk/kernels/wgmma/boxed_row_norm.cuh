// Rows that lie in shared memory as a whole (boxed_rows.cuh): their moments are taken once, whatever is multiplied by
// them (sm_90a).
#pragma once

#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/mma/row_norm.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>
#include <wpk/kernels/wgmma/boxed_rows.cuh>

namespace wpk
{

// What a lane's two rows are normalised by, as of accumulators in layout D of mma.cuh, of the 64 Rows of its warpgroup
// that begin at `tile`. All lanes call it.
template <class Problem, class Rows>
WPK_DEVICE void scaleByTile(RowScale (&rows)[2], SharedAddress tile)
{
    using Chunks = SwizzledTile<Rows::swizzle>;
    RowMoments<typename Problem::Multiply, Problem::row_is_centred, Problem::k> moments;
    const int row = warpIndex() % 4 * 16 + laneIndex() % 16; // @rows_looked
    WPK_UNROLL
    for (int slice = 0; slice < Rows::slices; ++slice)
    {
        constexpr int kOfBox = Rows::swizzle / 32;
        uint32 fragment[4];
        const int chunk = slice % kOfBox * 2 + laneIndex() / 16;
        loadMatrix4(fragment, tile + slice / kOfBox * Rows::boxBytes + Chunks::offset(row, chunk));
        if (slice == 0)
            moments.begin(fragment);
        moments.template add<Problem::k % 16 == 0>(fragment, slice * 16);
    }
    moments.finish(rows, asFloat(Problem::row_epsilon));
}

} // namespace wpk
