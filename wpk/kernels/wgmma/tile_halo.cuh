// A convolution's product by warpgroups (sm_90a) from filters and patches that it keeps: a block's filters come to
// shared memory once, and the pixels under a tile of output pixels, halo included, once for all taps. im2col brings a
// pixel once for each tap that reads it, and filters once for each tile.
//
// A block has teams of warpgroups, a warpgroup 64 pixels; each team computes tiles one after another, at its own pace,
// so that one stores while others multiply. A patch is 128 bytes of channels of its pixels, row by row, as one tensor
// copy lays it out; what lies outside of the image is zero. Warps load their rows of a tap from the patch into
// registers, so that a tap may begin at any pixel. Each team has a pipeline of patches, and a warp whose first lane
// asks for them.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/epilogue/output_tile.cuh>
#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>
#include <wpk/kernels/tiles/tile_store.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace wpk
{

// The shape of a block's work. Schedule names tile_p, tile_q, block_n, teams, patches (slots of a team), carry
// (PatchRows), persistent and early.
template <class T, class Problem, class Schedule>
struct HaloShape : Warpgroups<T, Schedule::tile_p * Schedule::tile_q, Schedule::block_n, Problem::c>
{
    using Team = Warpgroups<T, Schedule::tile_p * Schedule::tile_q, Schedule::block_n, Problem::c>;
    using Team::blockN, Team::kBoxDepth, Team::kBoxRowBytes, Team::warpsM;
    static constexpr int kPixels = Schedule::tile_p * Schedule::tile_q;
    static constexpr int teams = Schedule::teams, patches = Schedule::patches;
    // The patch, and how far apart two are: swizzles repeat after 1024 bytes.
    static constexpr int patchH =
        (Schedule::tile_p - 1) * Problem::stride_h + (Problem::filter_h - 1) * Problem::dilation_h + 1;
    static constexpr int patchW =
        (Schedule::tile_q - 1) * Problem::stride_w + (Problem::filter_w - 1) * Problem::dilation_w + 1;
    // @patch_pitch
    static constexpr int patchBytes = patchH * patchW * kBoxRowBytes, patchPitch = ceilDivide(patchBytes, 1024) * 1024;
    static constexpr int kTaps = Problem::filter_h * Problem::filter_w, chunks = ceilDivide(Problem::c, kBoxDepth);
    static constexpr int tapBytes = blockN * kBoxRowBytes, chunkBytes = kTaps * tapBytes; // of filters

    static_assert(!isSame<T, SplitFp32>, "products of fp32 take their parts from a pipeline");
    static_assert(kTaps <= 9, "the loop over taps is unrolled");
};

// Where what is kept lies in shared memory: filters, patches, the epilogue's staging, barriers. The filters of each
// chunk of channels have a barrier of their own.
template <class Shape>
struct HaloMemory
{
    using Filters = PipelineBarriers<Shape::chunks, 1>;
    using Patches = PipelineBarriers<Shape::patches, Shape::warpsM>;
    SharedAddress shared;
    static constexpr int kPatchesAt = Shape::chunks * Shape::chunkBytes;
    static constexpr int kStagingAt = kPatchesAt + Shape::teams * Shape::patches * Shape::patchPitch;
    static constexpr int kBarriersAt = kStagingAt + Shape::teams * Shape::warpsM * Shape::Staged::stagingBytes;
    static constexpr int kBytes = kBarriersAt + Filters::kBytes + Shape::teams * Patches::kBytes;

    WPK_DEVICE SharedAddress filter(int chunk, int tap) const
    {
        return shared + chunk * Shape::chunkBytes + tap * Shape::tapBytes;
    }
    WPK_DEVICE Filters filters() const
    {
        return {shared + kBarriersAt};
    }
    WPK_DEVICE SharedAddress patch(int team, int slot) const
    {
        return shared + kPatchesAt + (team * Shape::patches + slot) * Shape::patchPitch;
    }
    WPK_DEVICE Patches patches(int team) const
    {
        return {shared + kBarriersAt + Filters::kBytes + team * Patches::kBytes};
    }
    WPK_DEVICE void init() const
    {
        filters().init();
        for (int team = 0; team < Shape::teams; ++team)
            patches(team).init();
        fenceBarrierInit();
    }
};

// The tiles of a team: every so many-th, so that teams that work at the same time have neighbours.
template <class Problem, class Schedule>
class TeamTiles
{
    using Tile = OutputTile<Problem, Schedule>;

public:
    WPK_DEVICE TeamTiles(int team, int images)
        : tile_(static_cast<int>(blockIdx.x) * Schedule::teams + team), end_(images * Tile::kTiles) // @first_of_team
    {
    }

    WPK_DEVICE bool isDone() const
    {
        return tile_ >= end_;
    }
    WPK_DEVICE void advance()
    {
        tile_ += static_cast<int>(gridDim.x) * Schedule::teams; // @next_of_team
    }
    WPK_DEVICE Tile tile() const
    {
        return Tile(tile_);
    }

private:
    int tile_, end_;
};

// Asks for all filters of the block, which no kernel writes.
template <class Shape>
WPK_DEVICE void askForFilters(const HaloMemory<Shape>& memory, const TensorMap* map, int firstFilter)
{
    WPK_KEEP_LOOP
    for (int chunk = 0; chunk < Shape::chunks; ++chunk)
    {
        const SharedAddress barrier = memory.filters().full(chunk);
        arriveExpectBytes(barrier, Shape::chunkBytes); // @filter_bytes
        for (int tap = 0; tap < Shape::kTaps; ++tap)
            // @filters_copied
            copyTensor(memory.filter(chunk, tap), map, barrier, {chunk * Shape::kBoxDepth, tap, firstFilter});
    }
}

// Asks for all patches of a team's tiles, each as soon as its slot is free; channels are those from the first on.
template <class Problem, class Shape, class Tiles>
WPK_DEVICE void feedTeam(const HaloMemory<Shape>& memory, const TensorMap* map, int firstChannel, int team, Tiles tiles)
{
    const auto patches = memory.patches(team);
    PipelineState<Shape::patches> state;
    WPK_KEEP_LOOP
    for (; !tiles.isDone(); tiles.advance())
    {
        const auto tile = tiles.tile();
        // @patch_corner
        const int h = tile.p * Problem::stride_h - Problem::pad_h, w = tile.q * Problem::stride_w - Problem::pad_w;
        WPK_KEEP_LOOP
        for (int chunk = 0; chunk < Shape::chunks; ++chunk)
        {
            patches.acquire(state.stage, state.phase ^ 1, Shape::patchBytes);
            // @patch_copied
            copyTensor(memory.patch(team, state.stage), map, patches.full(state.stage),
                {firstChannel + chunk * Shape::kBoxDepth, w, h, tile.image});
            state.advance();
        }
    }
}

// A warp's rows of a patch under each tap, as wgmma takes them from registers. Taps go down the filter first: where a
// warp has two rows of eight pixels, the lower one under a tap is the upper one under the next, and may be carried on.
template <class Problem, class Schedule, class Shape>
class PatchRows
{

public:
    // Of a slice, in the layout of a fragment: upper and lower rows, then both of the other 16 bytes.
    using Slices = uint32[Shape::slices][4];

    static WPK_DEVICE constexpr int tap(int step)
    {
        return step % Problem::filter_h * Problem::filter_w + step / Problem::filter_h; // @order_of_taps
    }

    // Rows of the step's tap; those of the step before are `previous`. Addresses begin anew each time: kept for all
    // taps they would take many registers.
    WPK_DEVICE void load(Slices& rows, const Slices& previous, SharedAddress patch, int step) const
    {
        const int down = step % Problem::filter_h, right = step / Problem::filter_h;
        const int under = down * Problem::dilation_h * Shape::patchW + right * Problem::dilation_w;
        if (Schedule::carry == 0 || down == 0)
        {
            const int at = computedHere(pixel_) + under, half = laneIndex() / 16;
            WPK_UNROLL
            for (int slice = 0; slice < Shape::slices; ++slice)
                loadMatrix4(rows[slice], patch + SwizzledTile<128>::offset(at, slice * 2 + half));
            return;
        }
        // Eight pixels of the lower row, two slices at once.
        const int at = computedHere(pixelOf(8 + laneIndex() % 8)) + under, part = laneIndex() / 8; // @lower_row
        WPK_UNROLL
        for (int slice = 0; slice < Shape::slices; slice += 2)
        {
            uint32 lower[4];
            loadMatrix4(lower, patch + SwizzledTile<128>::offset(at, slice * 2 + part));
            WPK_UNROLL
            for (int i = 0; i < minOf(2, Shape::slices - slice); ++i)
            {
                rows[slice + i][0] = previous[slice + i][1]; // @row_carried
                rows[slice + i][1] = lower[i * 2];
                rows[slice + i][2] = previous[slice + i][3];
                rows[slice + i][3] = lower[i * 2 + 1];
            }
        }
    }

private:
    // Where a row of the warp lies in a patch under the filter's first tap.
    static WPK_DEVICE int pixelOf(int row)
    {
        // @pixel_of_warp
        const int pixel = minOf(warpIndex() % Shape::warpsM * 16 + row, Shape::kPixels - 1); // others are not stored
        return pixel / Schedule::tile_q * Problem::stride_h * Shape::patchW
               + pixel % Schedule::tile_q * Problem::stride_w;
    }

    const int pixel_ = pixelOf(laneIndex() % 16);
};

// acc += the products of all taps and channels of a tile. Those of a tap run while the rows of the next one are loaded;
// a chunk's end before the next one begins (wgmma/multiply_registers.cuh says why). A patch is given back when its last
// rows are in registers.
template <class T, class Problem, class Shape, class Rows>
WPK_DEVICE void multiplyPatches(float (&acc)[Shape::accumulators], const HaloMemory<Shape>& memory, int team,
    const Rows& patchRows, PipelineState<Shape::patches>& state)
{
    const auto patches = memory.patches(team);
    typename Rows::Slices rows[2] = {};
    WPK_KEEP_LOOP
    for (int chunk = 0; chunk < Shape::chunks; ++chunk)
    {
        waitBarrier(memory.filters().full(chunk), 0);        // @filters_awaited: which comes once
        waitBarrier(patches.full(state.stage), state.phase); // @patch_awaited
        const SharedAddress patch = memory.patch(team, state.stage);
        patchRows.load(rows[0], rows[1], patch, 0); // @first_rows_loaded
        __syncwarp();                               // products are asked for by whole warps
        WPK_UNROLL
        for (int step = 0; step < Shape::kTaps; ++step)
        {
            const uint64 b = swizzledDescriptor<128>(memory.filter(chunk, Rows::tap(step)));
            fenceWgmma(); // @products_fenced
            WPK_UNROLL
            for (int slice = 0; slice < Shape::slices; ++slice)
                wgmma<T>(acc, rows[step % 2][slice], b + slice * 2, 1);
            commitWgmma();
            if (step + 1 == Shape::kTaps)
                break;
            waitWgmma<1>(); // for the products of the tap before
            keepUntilHere(rows[(step + 1) % 2]);
            patchRows.load(rows[(step + 1) % 2], rows[step % 2], patch, step + 1);
        }
        patches.release(state.stage); // @patch_released
        state.advance();
        waitWgmma<0>(acc); // @products_done
        keepUntilHere(rows[0]);
        keepUntilHere(rows[1]);
    }
}

} // namespace wpk
