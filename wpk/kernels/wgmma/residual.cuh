// The residual: an operand of the epilogue that has y's rows and columns, as a shortcut has (sm_90a). A warp beside the
// producer asks TMA for its tiles while products run, so the epilogue reads shared memory, and waits for no load. A
// persistent block's are asked for ahead, as many tiles as Schedule::residual says.
//
// The operand that has it is named InShared (epilogue.cuh). A piece of it is the columns that warps stage at once, of
// all rows of a tile; a piece is boxes whose rows are 32, 64 or 128 bytes, with a swizzle of so many.
#pragma once

#include <wpk/kernels/epilogue/epilogue.cuh>
#include <wpk/kernels/tiles/tile_shared.cuh>
#include <wpk/kernels/wgmma/pipeline.cuh>

namespace wpk
{

// The pieces of a block's shared memory; Tensor is the operand, Tiles so many tiles as are there at once.
template <class Tensor, class Shape, int Tiles>
struct ResidualShape
{
    using Type = typename Tensor::Type;
    static constexpr int kColumns = Shape::persistent ? Shape::Staged::warpN : Shape::blockN; // of a piece
    static constexpr int kBoxColumns = commonDivisor(kColumns, 128 / static_cast<int>(sizeof(Type)));
    static constexpr int kRowBytes = kBoxColumns * static_cast<int>(sizeof(Type));
    static constexpr int kBoxes = kColumns / kBoxColumns, kBoxBytes = Shape::blockM * kRowBytes;
    static constexpr int kPieceBytes = kBoxes * kBoxBytes;
    static constexpr int kOfTile = Shape::blockN / kColumns, kPieces = Tiles * kOfTile;
    using Barriers = PipelineBarriers<kPieces, Shape::stageWarps>;
    static_assert(Shape::blockN % kColumns == 0, "a tile is whole pieces");
    static_assert(kRowBytes >= 32, "a swizzle has at least 32 bytes");
};

// Rows of an output window whose residual lies in shared memory, from a piece's first row and column on.
template <class Rows, class Pieces>
struct ResidualRows : Rows
{
    const unsigned char* piece;
    int firstRow, firstColumn;

    // Width neighbouring columns of the operand that is in shared memory.
    template <class T, int Width>
    WPK_DEVICE Vector<T, Width> residual(int row, int column) const
    {
        constexpr int kOfChunk = 16 / static_cast<int>(sizeof(T));
        const int along = column - firstColumn, inBox = along % Pieces::kBoxColumns;
        const int chunk = SwizzledTile<Pieces::kRowBytes>::offset(row - firstRow, inBox / kOfChunk); // @chunk_read
        const unsigned char* const box = piece + along / Pieces::kBoxColumns * Pieces::kBoxBytes;
        const auto* const at = reinterpret_cast<const T*>(box + chunk) + inBox % kOfChunk;
        return load<T, Width>(at);
    }
};

// A block's pieces: where they lie, their barriers, and this thread's tile, one of those that are there at once. Which
// piece of it is known where loops over a tile's columns are unrolled.
template <class Tensor, class Shape, int Tiles>
struct Residual
{
    using Pieces = ResidualShape<Tensor, Shape, Tiles>;
    using Barriers = typename Pieces::Barriers;
    static constexpr int kBytes = Pieces::kPieces * Pieces::kPieceBytes, kBarrierBytes = Barriers::kBytes;
    static constexpr bool exists = true;

    unsigned char* memory;
    Barriers barriers;
    const TensorMap* map;
    PipelineState<Tiles> state{};

    // Pieces at `memory`, which is aligned to 1024 bytes, and barriers at `barriers`.
    WPK_DEVICE Residual(unsigned char* memory, SharedAddress barriers, const TensorMap* map)
        : memory(memory), barriers{barriers}, map(map)
    {
    }

    // Behind it stands fenceBarrierInit.
    WPK_DEVICE void init() const
    {
        prefetchTensorMap(map);
        barriers.init();
    }

    // A whole warp waits for a piece of its tile.
    WPK_DEVICE void wait(int piece) const
    {
        waitBarrier(barriers.full(numberOf(piece)), state.phase); // @piece_awaited
        __syncwarp();
    }

    // A warp no longer needs it.
    WPK_DEVICE void release(int piece) const
    {
        __syncwarp();                      // all lanes have read it
        barriers.release(numberOf(piece)); // @piece_released
    }

    // Of warpgroups in turns each has a place of its own; the parity of its tiles tells rounds apart.
    WPK_DEVICE void beginTile(int place, int parity)
    {
        state = {place, parity};
    }

    // Behind all pieces of a tile.
    WPK_DEVICE void endTile()
    {
        state.advance();
    }

    // The window of a piece's columns, in whose tile's rows it begins `row` further down, with the residual there.
    template <class Rows>
    WPK_DEVICE OutputWindow<ResidualRows<Rows, Pieces>> on(
        int piece, const OutputWindow<Rows>& window, int tileRow) const
    {
        const unsigned char* const from = memory + numberOf(piece) * Pieces::kPieceBytes;
        return {{window.rows, from, tileRow, window.firstColumn}, window.operands, window.y, window.rowEnd,
            window.columnEnd, window.storedColumns, window.firstRow, window.firstColumn, window.moments};
    }

    // Asks for the pieces of a tile, each as soon as its place is free; one thread calls it, tile after tile.
    template <class Rows>
    WPK_DEVICE void produceTile(const OutputWindow<Rows>& tile)
    {
        WPK_KEEP_LOOP
        for (int piece = 0; piece < Pieces::kOfTile; ++piece)
        {
            const int number = numberOf(piece);
            barriers.acquire(number, state.phase ^ 1, Pieces::kPieceBytes); // @piece_acquired
            const SharedAddress target = sharedAddress(memory) + number * Pieces::kPieceBytes;
            WPK_UNROLL
            for (int box = 0; box < Pieces::kBoxes; ++box)
            {
                const int column = tile.firstColumn + piece * Pieces::kColumns + box * Pieces::kBoxColumns;
                copyBox(target + box * Pieces::kBoxBytes, barriers.full(number), column, tile.firstRow, tile.rows);
            }
        }
        endTile();
    }

private:
    // Of all that are there at once.
    WPK_DEVICE int numberOf(int piece) const
    {
        return state.stage * Pieces::kOfTile + piece;
    }

    // The map's matrices are those of a batch; pixels are one.
    WPK_DEVICE void copyBox(
        SharedAddress target, SharedAddress barrier, int column, int row, const MatrixRows& of) const
    {
        const int middle = Tensor::middle == 0 ? 0 : of.middle, outer = Tensor::outer == 0 ? 0 : of.outer;
        copyTensor(target, map, barrier, {column, row, middle, outer});
    }
    template <int P, int Q>
    WPK_DEVICE void copyBox(
        SharedAddress target, SharedAddress barrier, int column, int row, const PixelRows<P, Q>&) const
    {
        copyTensor(target, map, barrier, {column, row});
    }
};

namespace detail
{

template <class List, class Shape, int Tiles>
struct ResidualIn
{
    using Found = NoResidual;
};
template <class One, class... Others, class Shape, int Tiles>
struct ResidualIn<Tensors<One, Others...>, Shape, Tiles>
{
    using Found = Select<One::inShared, Residual<One, Shape, Tiles>,
        typename ResidualIn<Tensors<Others...>, Shape, Tiles>::Found>;
};

} // namespace detail

// Tensor maps of A and B, and of the residual where it is in shared memory.
template <class Schedule>
using WgmmaMaps = TensorMaps<Schedule::residual != 0 ? 3 : 2>;

// Of the operand that is in shared memory, if there is one.
template <class Problem, class Schedule, class Shape>
using ResidualOf = typename detail::ResidualIn<typename Problem::Operands, Shape, Schedule::residual>::Found;

} // namespace wpk
