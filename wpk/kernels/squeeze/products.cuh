// The two products of a squeeze (wpk/schedules/squeeze.cuh): weights, operands, hidden row and gates.
#pragma once

#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/rows/row_products.cuh>
#include <wpk/kernels/squeeze/block.cuh>

namespace wpk
{

namespace detail
{

// Starts copies of this block's part of both weights.
template <class Problem, class Schedule>
WPK_DEVICE void stageWeights(const SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    constexpr int run = Shape::run, threads = Shape::threads;
    stageRows<threads, Problem::hidden, Shape::slice, run, Shape::downStride>(
        block.staged(), block.ownDown(), Shape::weightRuns * run, Problem::hidden, block.runsOfDown());
    stageRows<threads, Shape::gateSlice * run, Shape::hiddenRuns, run, Shape::upStride>(
        block.staged() + Shape::upAt, block.ownUp(), Shape::hiddenRuns * run, block.rowsOfUp(), Shape::hiddenRuns);
    commitCopies();
}

// Loads the operands of the rows, which are needed behind the products.
template <class Problem, class Schedule>
WPK_DEVICE void loadOperands(SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Block = SqueezeBlock<Problem, Schedule>;
    constexpr int run = Shape::run, threads = Shape::threads;
    WPK_UNROLL
    for (int turn = 0; turn < Block::hiddenTurns; ++turn)
    {
        if (block.thread + turn * threads < Problem::hidden)
            block.ofHidden[turn].load(block.inputs + 3, block.image, block.thread + turn * threads);
    }
    WPK_UNROLL
    for (int turn = 0; turn < Block::gateTurns; ++turn)
    {
        const int gate = block.thread + turn * threads;
        if (gate < block.rowsOfUp())
            block.ofGates[turn].load(
                block.inputs + 3 + Block::hiddenCount, block.image, block.rank * Shape::gateSlice * run + gate);
    }
}

// This block's part of the hidden sums, then the whole hidden row.
template <class Problem, class Schedule>
WPK_DEVICE void multiplyDown(const SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Block = SqueezeBlock<Problem, Schedule>;
    using Weight = typename Shape::Weight;
    constexpr int run = Shape::run, threads = Shape::threads;
    if constexpr (Shape::isStaged)
        waitCopies<0>(); // @weights_there
    __syncthreads();     // @means_there
    const Weight* const down = Shape::isStaged ? block.staged() : block.ownDown();
    float* const part = block.shared + Shape::partAt;
    multiplyRows<threads, Problem::hidden, Shape::slice>(down, Shape::downStride, block.shared + Shape::rowAt,
        Problem::hidden, block.runsOfDown(), [=](int row, float sum) { part[row] = sum; });
    __syncthreads(); // @part_there
    constexpr int pitch = Shape::hiddenRuns * run;
    if constexpr (Shape::blocks > 1)
    {
        const int place = Shape::allPartsAt + block.rank * pitch; // @parts_placed
        block.template sendToAll<Block::hiddenChunks>(Block::partsMeet, part, 0, Problem::hidden, place);
        waitBarrierOfCluster(block.barrierOf(Block::partsMeet), 0); // @parts_there
    }
    WPK_UNROLL
    for (int turn = 0; turn < Block::hiddenTurns; ++turn)
    {
        const int row = block.thread + turn * threads;
        float value = 0.0f;
        if (row < Problem::hidden)
        {
            const float sum =
                Shape::blocks > 1 ? block.sumOfBlocks(block.shared + Shape::allPartsAt + row, pitch) : part[row];
            value = evaluateWith<typename Problem::HiddenOf>(sum, block.ofHidden[turn]);
        }
        if (row < Shape::hiddenRuns * run)
            block.shared[Shape::hiddenAt + row] = value;
    }
    __syncthreads(); // @hidden_there
}

// The gates of this block's slice; zeros behind the last channel.
template <class Problem, class Schedule>
WPK_DEVICE void multiplyUp(const SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Block = SqueezeBlock<Problem, Schedule>;
    using Weight = typename Shape::Weight;
    constexpr int run = Shape::run, threads = Shape::threads;
    const Weight* const up = Shape::isStaged ? block.staged() + Shape::upAt : block.ownUp();
    float* const gates = block.shared + Shape::gatesAt;
    multiplyRows<threads, Shape::gateSlice * run, Shape::hiddenRuns>(up, Shape::upStride,
        block.shared + Shape::hiddenAt, block.rowsOfUp(), Shape::hiddenRuns,
        [=](int row, float sum) { gates[row] = sum; });
    __syncthreads(); // @products_there
    WPK_UNROLL
    for (int turn = 0; turn < Block::gateTurns; ++turn)
    {
        const int gate = block.thread + turn * threads;
        if (gate < Shape::gateSlice * run)
        {
            const bool isThere = gate < block.rowsOfUp();
            gates[gate] = isThere ? evaluateWith<typename Problem::GatesOf>(gates[gate], block.ofGates[turn]) : 0.0f;
        }
    }
    __syncthreads(); // @gates_there
    if constexpr (Shape::sharesGates)
    {
        constexpr int own = Shape::gateSlice * run;
        block.template sendToAll<own / 4>(
            Block::gatesMeet, gates, 0, own, Shape::allGatesAt + block.rank * own); // @gates_placed
        waitBarrierOfCluster(block.barrierOf(Block::gatesMeet), 0);                 // @gates_of_all
    }
}

} // namespace detail

} // namespace wpk
