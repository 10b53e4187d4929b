// Blocks of warpgroups that stay (sm_90a): each computes tiles of the output one after another, and the ring goes on
// from tile to tile.
//
// While the consumers store a tile, the producer asks for steps of the next ones, as many as the ring has slots. So the
// first copies are waited for once a block; and the epilogue's staging lies behind the ring, not in it.
#pragma once

#include <wpk/kernels/wgmma/tile.cuh>

namespace wpk
{

// The tiles of this block in a product of which `Columns` columns are stored: every gridDim.x-th, counted along the
// columns first. Blocks that work at the same time then share rows of A, which come from memory once.
template <class Shape, int Columns>
class TilesInTurn
{
    static constexpr int kAcross = ceilDivide(Columns, Shape::blockN);

public:
    WPK_DEVICE explicit TilesInTurn(int rows)
        : tile_(static_cast<int>(blockIdx.x)), end_(ceilDivide(rows, Shape::blockM) * kAcross) // @tiles_counted
    {
    }

    WPK_DEVICE bool isDone() const
    {
        return tile_ >= end_;
    }
    WPK_DEVICE void advance()
    {
        tile_ += static_cast<int>(gridDim.x); // @next_tile
    }
    WPK_DEVICE int firstRow() const
    {
        return tile_ / kAcross * Shape::blockM; // @first_row
    }
    WPK_DEVICE int firstColumn() const
    {
        return tile_ % kAcross * Shape::blockN;
    }

private:
    int tile_, end_;
};

// Asks for all steps of all tiles, each as soon as its slot is free; of the first one B's before the kernels in front
// have ended, if none of them writes B. `tilesAt(firstRow, firstColumn)` says where a tile comes from.
template <class Shape, class Turn, class TilesAt>
WPK_DEVICE void feedWgmmaRing(const WgmmaRing<Shape>& ring, Turn turn, const TilesAt& tilesAt, int steps)
{
    using Tiles = decltype(tilesAt(0, 0));
    if (Shape::early && !Tiles::kConstantB)
        waitForPrevious();
    bool waits = Shape::early && Tiles::kConstantB;
    RingPlace<Shape::stages> place;
    WPK_KEEP_LOOP
    for (; !turn.isDone(); turn.advance())
    {
        const Tiles tiles = tilesAt(turn.firstRow(), turn.firstColumn()); // @tile_begun
        WPK_KEEP_LOOP
        for (int step = 0; step < steps; ++step)
        {
            ring.claim(place, Shape::stageBytes);
            tiles.copyB(ring.tileB(place.slot), ring.full(place.slot), step);
            if (waits) // @a_awaits_previous
                waitForPrevious();
            waits = false;
            tiles.copyA(ring.tileA(place.slot), ring.full(place.slot), step);
            place.advance();
        }
    }
    if (Shape::early)
        releaseNext();
}

// Computes this block's tiles of a product of `rowLimit` rows. `rows`, `operands`, `y`, `valid` and Stored as in
// storeTiles; `limits` keep A (channel_limits.cuh).
template <class Problem, class Shape, int Steps, int Stored, class TilesAt, class Rows, class Limits = NoLimits>
WPK_DEVICE void computeWgmmaTiles(unsigned char* shared, const TilesAt& tilesAt, const Rows& rows,
    const void* const* operands, void* y, int rowLimit, int valid, const Limits& limits = Limits())
{
    constexpr bool kConstantB = decltype(tilesAt(0, 0))::kConstantB;
    const WgmmaRing<Shape> ring(sharedAddress(shared));
    TilesInTurn<Shape, Stored> turn(rowLimit);
    const bool isProducer = threadIdx.x == Shape::consumers;
    if (isProducer)
    {
        ring.init();
        tilesAt(0, 0).prefetch();
    }
    __syncwarp();    // the producer's lanes took different ways
    __syncthreads(); // @barriers_there
    if (isProducer)
        feedWgmmaRing<Shape>(ring, turn, tilesAt, Steps);
    if (Shape::early)
        waitForPrevious(); // @epilogue_awaits_previous: the epilogue touches memory that kernels in front touch
    if (warpIndex() >= Shape::warpsM)
        return;
    const SplitRange<1, Steps> whole;
    RingPlace<Shape::stages> place;
    // @tiles_in_turn
    WPK_KEEP_LOOP
    for (; !turn.isDone(); turn.advance())
    {
        float acc[Shape::accumulators] = {}; // @sums_begun
        multiplyRing<typename Problem::Multiply, Shape, kConstantB>(acc, shared, ring, place, whole, limits);
        ring.release(place.last()); // @last_released
        if (Shape::isSplit)
            syncThreads(1, Shape::consumers); // nobody reads what is cut off of the last box any more
        // @sums_staged
        storeInParts<Problem, Shape>(acc, shared + ring.bytes(), rows, operands, y, turn.firstRow(), rowLimit,
            turn.firstColumn(), valid, Stored);
    }
}

} // namespace wpk
