// Squeeze and excitation: the mean of each channel, two products of that one row, and what the gates scale.
//
// The `blocks` of a cluster share an image. Block b has slice b of the channels: it pools them, multiplies them by
// its columns of `down` (all rows: a part of each hidden sum), sends its parts to all blocks and adds theirs, and
// multiplies the hidden row, which every block then has, by its rows of `up`: the gates of slice b. These scale the
// channels of slice b, so that blocks meet once. Where the schedule pools by pixels, block b reads all channels of
// part b of the pixels, which is what few channels and many pixels want; blocks then meet twice more.
//
// Blocks meet by stores into each other's shared memory, to places that nothing else uses; of each meeting a barrier of
// the block counts their bytes. A barrier of the cluster would take a fence of all memory, and loads from other blocks
// behind it (docs/decisions/0066-sent-parts.md).
//
// Weights are constants: where the schedule stages them, they are on their way to shared memory before the kernel in
// front has ended. Operands of the rows are loaded before they are needed, since each meeting is a latency already.
// Where the schedule keeps the images, copies to shared memory bring all that a block pools at once, and what it scales
// is there already.
//
// Channels are handled in runs of 8; rows of the weights have whole runs, with zeros behind the row.
//
// Problem: X over (leading, pixel, channel), or (leading, channel, pixel) where pixelsFastest; Y and Scaled over
// (leading, place, k), or (leading, k, place) where placesFastest; Down and Up over (row, column); Hidden and Gates:
// operands over (leading, row); MeansOf, HiddenOf, GatesOf, ScaledOf: expressions; c, pixels, hidden, k, places;
// rowPadding: zeros that follow y's channels.
#pragma once

#include <wpk/kernels/async_copy.cuh>
#include <wpk/kernels/cluster_copy.cuh>
#include <wpk/kernels/early_launch.cuh>
#include <wpk/kernels/index.cuh>
#include <wpk/kernels/mbarrier.cuh>
#include <wpk/kernels/operand_elements.cuh>
#include <wpk/kernels/row_products.cuh>
#include <wpk/kernels/tensor.cuh>
#include <wpk/kernels/warp.cuh>

namespace wpk
{

namespace detail
{

// Sizes, and where things lie in shared memory; the schedule's shared_bytes are those of all together.
template <class Problem, class Schedule>
struct SqueezeShape
{
    using Weight = typename Problem::Down::Type;
    static constexpr int run = 8, threads = Schedule::threads, blocks = Schedule::blocks;
    static constexpr bool isStaged = Schedule::staged != 0, byPixels = Schedule::by_pixels != 0;
    static constexpr bool isKept = Schedule::kept != 0;
    static constexpr bool scales = Problem::places > 1;
    static constexpr int weightRuns = ceilDivide(Problem::c, run), hiddenRuns = ceilDivide(Problem::hidden, run);
    static constexpr int gateRuns = ceilDivide(Problem::k + Problem::rowPadding, run);
    static constexpr int channelRuns = scales ? maxOf(weightRuns, gateRuns) : weightRuns;
    static constexpr int slice = ceilDivide(channelRuns, blocks); // runs that a block multiplies
    static constexpr int gateSlice = ceilDivide(scales ? channelRuns : gateRuns, blocks); // runs of gates that it has
    static constexpr int pooled = byPixels ? channelRuns : slice;                         // runs that it pools
    static constexpr int pixels = byPixels ? ceilDivide(Problem::pixels, blocks) : Problem::pixels;
    static constexpr int columns = minOf(pooled, threads), lanes = threads / columns;
    static constexpr bool sharesGates = byPixels && scales;
    static constexpr int stored = sharesGates ? channelRuns : gateSlice; // runs of channels that it writes

    static constexpr int lanePitch = pooled * run + 4; // floats; of many lanes the same channel lies in several banks
    static constexpr int sumsAt = Problem::pixelsFastest ? 0 : lanes * lanePitch;
    static constexpr int rowAt = sumsAt + pooled * run;
    static constexpr int partAt = rowAt + slice * run;
    static constexpr int hiddenAt = partAt + hiddenRuns * run;
    static constexpr int gatesAt = hiddenAt + hiddenRuns * run;
    // What all blocks send: parts of the hidden sums; where they pool by pixels, sums of this block's slice, and gates.
    static constexpr int allPartsAt = gatesAt + gateSlice * run;
    static constexpr int allSumsAt = allPartsAt + (blocks > 1 ? blocks * hiddenRuns * run : 0);
    static constexpr int allGatesAt = allSumsAt + (byPixels ? blocks * slice * run : 0);
    static constexpr int barriersAt = allGatesAt + (sharesGates ? gateSlice * blocks * run : 0);
    static constexpr int floats = barriersAt + (blocks > 1 ? 8 : 0);
    static constexpr int downStride = isStaged ? (slice + 1) * run : weightRuns * run;
    static constexpr int upStride = (hiddenRuns + isStaged) * run;
    static constexpr int upAt = Problem::hidden * downStride; // elements
    static constexpr int stagedElements = isStaged ? upAt + gateSlice * run * upStride : 0;
    static constexpr int keptAt = floats * 4 + stagedElements * static_cast<int>(sizeof(Weight)); // in bytes
    static constexpr int keptElements = isKept ? pixels * pooled * run : 0;
    static_assert(Schedule::shared_bytes == keptAt + keptElements * static_cast<int>(sizeof(typename Problem::X::Type)),
        "Python and C++ count the same shared memory");
};

// What a block does, one function for each part of the way.
template <class Problem, class Schedule>
struct SqueezeBlock
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Weight = typename Shape::Weight;
    using X = typename Problem::X;
    using Y = typename Problem::Y;
    static constexpr int run = Shape::run, threads = Shape::threads, blocks = Shape::blocks;
    static constexpr int hiddenCount = Problem::Hidden::count, gateCount = Problem::Gates::count;
    static constexpr int hiddenTurns = ceilDivide(Shape::hiddenRuns * run, threads);
    static constexpr int gateTurns = ceilDivide(Shape::gateSlice * run, threads);

    const void* const* inputs; // x, down, up, operands
    float* shared;
    int image, rank, thread;
    OperandElements<typename Problem::Hidden> ofHidden[hiddenTurns];
    OperandElements<typename Problem::Gates> ofGates[gateTurns];

    WPK_DEVICE Weight* staged() const
    {
        return reinterpret_cast<Weight*>(shared + Shape::floats);
    }
    // A run of channels of a pixel, both counted from the first that this block pools.
    WPK_DEVICE typename X::Type* kept(int pixel, int column) const
    {
        auto* const images = reinterpret_cast<typename X::Type*>(reinterpret_cast<char*>(shared) + Shape::keptAt);
        return images + (pixel * Shape::pooled + column) * run;
    }
    WPK_DEVICE void loadKept(int pixel, int column, typename X::Type (&row)[run]) const
    {
        constexpr int chunk = 16 / static_cast<int>(sizeof(typename X::Type));
        WPK_UNROLL
        for (int i = 0; i < run; i += chunk)
        {
            const auto part = load<typename X::Type, chunk>(kept(pixel, column) + i);
            WPK_UNROLL
            for (int j = 0; j < chunk; ++j)
                row[i + j] = part[j];
        }
    }
    WPK_DEVICE int runsOfDown() const // of this block's columns
    {
        return maxOf(0, minOf(Shape::slice, Shape::weightRuns - rank * Shape::slice));
    }
    WPK_DEVICE int rowsOfUp() const
    {
        return maxOf(0, minOf(Shape::gateSlice * run, Problem::k - rank * Shape::gateSlice * run));
    }
    // Where this block's part of a weight begins; the weight itself where it has none.
    WPK_DEVICE const Weight* ownDown() const
    {
        const auto* const down = static_cast<const Weight*>(inputs[1]);
        return runsOfDown() > 0 ? down + rank * Shape::slice * run : down;
    }
    WPK_DEVICE const Weight* ownUp() const
    {
        const auto* const up = static_cast<const Weight*>(inputs[2]);
        return rowsOfUp() > 0 ? up + rank * Shape::gateSlice * run * Shape::hiddenRuns * run : up;
    }

    // Where blocks meet; each has a barrier.
    enum Meeting
    {
        sumsMeet,
        partsMeet,
        gatesMeet,
        meetings
    };
    static constexpr int hiddenChunks = ceilDivide(Problem::hidden, 4); // four floats are sent at once
    WPK_DEVICE SharedAddress barrierOf(Meeting meeting) const
    {
        return sharedAddress(shared + Shape::barriersAt) + meeting * 8;
    }

    // What comes is known from the beginning. Behind it stands waitCluster, before anything is sent.
    WPK_DEVICE void prepareMeetings() const
    {
        if (thread == 0)
        {
            constexpr int ofSlice = Shape::slice * run;
            const int pooled = maxOf(0, minOf(ofSlice, Shape::pooled * run - rank * ofSlice));
            const int floats[meetings] = {pooled, hiddenChunks * 4, Shape::gateSlice * run};
            WPK_UNROLL
            for (int meeting = 0; meeting < meetings; ++meeting)
                initBarrier(barrierOf(Meeting(meeting)), 1);
            fenceBarrierInit();
            WPK_UNROLL
            for (int meeting = 0; meeting < meetings; ++meeting)
                arriveExpectBytes(barrierOf(Meeting(meeting)), blocks * floats[meeting] * 4); // @bytes_announced
        }
        arriveReadCluster(); // @meetings_told
    }

    // Sends `Chunks` chunks of four floats to every block, this one too, where they lie from `place` on: to block b
    // those from b * `step` on, as far as `end`.
    template <int Chunks>
    WPK_DEVICE void sendToAll(Meeting meeting, const float* from, int step, int end, int place) const
    {
        for (int i = thread; i < blocks * Chunks; i += threads)
        {
            const int target = (i / Chunks + rank) % blocks, chunk = i % Chunks; // each begins with another one
            const int at = target * step + chunk * 4;
            if (at < end)
                storeAsync(clusterAddress(sharedAddress(shared + place + chunk * 4), target), load<float, 4>(from + at),
                    clusterAddress(barrierOf(meeting), target));
        }
    }

    // A value of every block's, added in their order; `pitch` floats lie between them.
    WPK_DEVICE float sumOfBlocks(const float* values, int pitch) const
    {
        float sum = values[0];
        WPK_UNROLL
        for (int block = 1; block < blocks; ++block)
            sum += values[block * pitch];
        return sum;
    }

    WPK_DEVICE void stageWeights() const
    {
        stageRows<threads, Problem::hidden, Shape::slice, run, Shape::downStride>(
            staged(), ownDown(), Shape::weightRuns * run, Problem::hidden, runsOfDown());
        stageRows<threads, Shape::gateSlice * run, Shape::hiddenRuns, run, Shape::upStride>(
            staged() + Shape::upAt, ownUp(), Shape::hiddenRuns * run, rowsOfUp(), Shape::hiddenRuns);
        commitCopies();
    }

    WPK_DEVICE void loadOperands()
    {
        WPK_UNROLL
        for (int turn = 0; turn < hiddenTurns; ++turn)
        {
            if (thread + turn * threads < Problem::hidden)
                ofHidden[turn].load(inputs + 3, image, thread + turn * threads);
        }
        WPK_UNROLL
        for (int turn = 0; turn < gateTurns; ++turn)
        {
            const int gate = thread + turn * threads;
            if (gate < rowsOfUp())
                ofGates[turn].load(inputs + 3 + hiddenCount, image, rank * Shape::gateSlice * run + gate);
        }
    }

    WPK_DEVICE int firstPixel() const
    {
        return Shape::byPixels ? rank * Shape::pixels : 0;
    }
    WPK_DEVICE int endPixel() const
    {
        return minOf(Problem::pixels, firstPixel() + Shape::pixels);
    }
    WPK_DEVICE int firstChannel() const // of those that it pools
    {
        return Shape::byPixels ? 0 : rank * Shape::slice * run;
    }

    // Asks for all that this block pools. A thread asks for what it alone reads again.
    WPK_DEVICE void keepImages() const
    {
        using T = typename X::Type;
        constexpr int chunk = 16 / static_cast<int>(sizeof(T));
        static_assert(!Shape::isKept || X::template accessWidth<run>() == chunk, "copies of 16 bytes");
        const int lane = thread / Shape::columns;
        for (int column = thread % Shape::columns; lane < Shape::lanes && column < Shape::pooled;
            column += Shape::columns)
        {
            const int channel = firstChannel() + column * run;
            for (int p = firstPixel() + lane; channel < Problem::c && p < endPixel(); p += Shape::lanes)
            {
                const T* const from = static_cast<const T*>(inputs[0]) + X::offset(image, p, channel);
                T* const to = kept(p - firstPixel(), column);
                WPK_UNROLL
                for (int i = 0; i < run; i += chunk)
                    copyAsync<16>(sharedAddress(to + i), from + i);
            }
        }
        commitCopies();
    }

    // The sums of this block's channels over its pixels, to shared memory.
    WPK_DEVICE void pool() const
    {
        if constexpr (Problem::pixelsFastest)
            poolAlongPixels();
        else
            poolAlongChannels();
    }

    // A warp sums a channel.
    WPK_DEVICE void poolAlongPixels() const
    {
        for (int own = warpIndex(); own < Shape::pooled * run; own += threads / kWarpSize)
        {
            const int channel = firstChannel() + own;
            float sum = 0.0f;
            for (int p = firstPixel() + laneIndex() * run; channel < Problem::c && p < endPixel(); p += kWarpSize * run)
            {
                float row[run];
                loadRowAs<X, run>(inputs[0], X::offset(image, channel, p), minOf(run, endPixel() - p), row);
                WPK_UNROLL
                for (int i = 0; i < run; ++i)
                    sum += row[i];
            }
            sum = warpSum(sum);
            if (laneIndex() == 0)
                shared[Shape::sumsAt + own] = sum;
        }
    }

    // Neighbouring threads have neighbouring runs of channels, and lanes of threads every few pixels.
    WPK_DEVICE void poolAlongChannels() const
    {
        constexpr int columns = Shape::columns, lanes = Shape::lanes, pooled = Shape::pooled;
        constexpr int atOnce = minOf(8, ceilDivide(Shape::pixels, lanes));
        const int lane = thread / columns;
        if constexpr (Shape::isKept)
            waitCopies<0>(); // @images_there
        for (int column = thread % columns; lane < lanes && column < pooled; column += columns)
        {
            const int channel = firstChannel() + column * run, valid = minOf(run, Problem::c - channel);
            float sums[run] = {};
            for (int p = firstPixel() + lane; valid > 0 && p < endPixel(); p += atOnce * lanes) // @first_pixel
            {
                typename X::Type rows[atOnce][run];
                WPK_UNROLL
                for (int j = 0; j < atOnce; ++j) // all under way at once; behind the end the last one again
                {
                    const int pixel = minOf(p + j * lanes, endPixel() - 1);
                    if constexpr (Shape::isKept)
                        loadKept(pixel - firstPixel(), column, rows[j]);
                    else
                        loadRow<X, run>(inputs[0], X::offset(image, pixel, channel), valid, rows[j]);
                }
                WPK_UNROLL
                for (int j = 0; j < atOnce; ++j)
                {
                    WPK_UNROLL
                    for (int i = 0; i < run; ++i)
                        sums[i] += p + j * lanes < endPixel() ? toFloat(rows[j][i]) : 0.0f; // @pooled
                }
            }
            float* const target = shared + lane * Shape::lanePitch + column * run;
            store<float, 4>(target, {sums[0], sums[1], sums[2], sums[3]});
            store<float, 4>(target + 4, {sums[4], sums[5], sums[6], sums[7]});
        }
        __syncthreads(); // @lanes_pooled
        constexpr int channels = pooled * run;
        constexpr int G = minOf(minOf(kWarpSize, powerFrom(lanes)), powerUpTo(maxOf(1, threads / channels)));
        for (int first = 0; first < channels; first += threads / G)
        {
            const int own = first + thread / G;
            float sum = 0.0f;
            for (int from = thread % G; own < channels && from < lanes; from += G)
                sum += shared[from * Shape::lanePitch + own];
            WPK_UNROLL
            for (int distance = G / 2; distance > 0; distance /= 2)
                sum += shuffleXor(sum, distance);
            if (thread % G == 0 && own < channels)
                shared[Shape::sumsAt + own] = sum;
        }
    }

    // The means of this block's slice.
    WPK_DEVICE void finishMeans() const
    {
        constexpr int ofSlice = Shape::slice * run;
        __syncthreads(); // @pooled_by_all
        const float* sums = shared + Shape::sumsAt;
        if constexpr (Shape::byPixels)
        {
            const int place = Shape::allSumsAt + rank * ofSlice; // @sums_placed
            sendToAll<ofSlice / 4>(sumsMeet, sums, ofSlice, Shape::pooled * run, place);
            waitBarrierOfCluster(barrierOf(sumsMeet), 0); // @sums_there
            sums = shared + Shape::allSumsAt;
        }
        for (int own = thread; own < ofSlice; own += threads)
        {
            const int channel = rank * ofSlice + own;
            float mean = 0.0f;
            if (channel < Problem::c)
            {
                const float sum = Shape::byPixels ? sumOfBlocks(sums + own, ofSlice) : sums[own];
                const float none[1] = {};
                mean = Problem::MeansOf::evaluate(sum / Problem::pixels, none);
            }
            shared[Shape::rowAt + own] = mean;
        }
    }

    // This block's part of the hidden sums, then the whole hidden row.
    WPK_DEVICE void multiplyDown() const
    {
        if constexpr (Shape::isStaged)
            waitCopies<0>(); // @weights_there
        __syncthreads();     // @means_there
        const Weight* const down = Shape::isStaged ? staged() : ownDown();
        float* const part = shared + Shape::partAt;
        multiplyRows<threads, Problem::hidden, Shape::slice>(down, Shape::downStride, shared + Shape::rowAt,
            Problem::hidden, runsOfDown(), [=](int row, float sum) { part[row] = sum; });
        __syncthreads(); // @part_there
        constexpr int pitch = Shape::hiddenRuns * run;
        if constexpr (blocks > 1)
        {
            const int place = Shape::allPartsAt + rank * pitch; // @parts_placed
            sendToAll<hiddenChunks>(partsMeet, part, 0, Problem::hidden, place);
            waitBarrierOfCluster(barrierOf(partsMeet), 0); // @parts_there
        }
        WPK_UNROLL
        for (int turn = 0; turn < hiddenTurns; ++turn)
        {
            const int row = thread + turn * threads;
            float value = 0.0f;
            if (row < Problem::hidden)
            {
                const float sum = blocks > 1 ? sumOfBlocks(shared + Shape::allPartsAt + row, pitch) : part[row];
                value = evaluateWith<typename Problem::HiddenOf>(sum, ofHidden[turn]);
            }
            if (row < Shape::hiddenRuns * run)
                shared[Shape::hiddenAt + row] = value;
        }
        __syncthreads(); // @hidden_there
    }

    // The gates of this block's slice; zeros behind the last channel.
    WPK_DEVICE void multiplyUp() const
    {
        const Weight* const up = Shape::isStaged ? staged() + Shape::upAt : ownUp();
        float* const gates = shared + Shape::gatesAt;
        multiplyRows<threads, Shape::gateSlice * run, Shape::hiddenRuns>(up, Shape::upStride, shared + Shape::hiddenAt,
            rowsOfUp(), Shape::hiddenRuns, [=](int row, float sum) { gates[row] = sum; });
        __syncthreads(); // @products_there
        WPK_UNROLL
        for (int turn = 0; turn < gateTurns; ++turn)
        {
            const int gate = thread + turn * threads;
            if (gate < Shape::gateSlice * run)
            {
                const bool isThere = gate < rowsOfUp();
                gates[gate] = isThere ? evaluateWith<typename Problem::GatesOf>(gates[gate], ofGates[turn]) : 0.0f;
            }
        }
        __syncthreads(); // @gates_there
        if constexpr (Shape::sharesGates)
        {
            constexpr int own = Shape::gateSlice * run;
            sendToAll<own / 4>(gatesMeet, gates, 0, own, Shape::allGatesAt + rank * own); // @gates_placed
            waitBarrierOfCluster(barrierOf(gatesMeet), 0);                                // @gates_of_all
        }
    }

    // Writes what the gates make of this block's part of the images, or the gates themselves.
    WPK_DEVICE void scale(void* y) const
    {
        const float* const gates = shared + (Shape::sharesGates ? Shape::allGatesAt : Shape::gatesAt);
        const int begin = Shape::sharesGates ? 0 : rank * Shape::gateSlice * run;
        const int first = Shape::scales ? firstPixel() : 0, end = Shape::scales ? endPixel() : 1;
        if constexpr (Problem::placesFastest)
            scaleAlongPlaces(y, gates, begin, first, end);
        else
            scaleAlongChannels(y, gates, begin, first, end);
    }

private:
    static constexpr int scaledAt = 3 + hiddenCount + gateCount;
    using Operands = OperandRows<typename Problem::Scaled, run>;
    // Whether what is scaled may be what is kept; the launch's pointers say whether it is.
    static constexpr bool scalesKept = Shape::isKept && Shape::scales && Problem::places == Problem::pixels
                                       && Problem::k == Problem::c && isSame<typename Problem::Scaled, Tensors<X>>;

    WPK_DEVICE void takeKept(Operands& operands, int place, int column) const
    {
        typename X::Type row[run];
        loadKept(place, column, row);
        WPK_UNROLL
        for (int i = 0; i < run; ++i)
            operands.values[i][0] = toFloat(row[i]);
    }

    WPK_DEVICE void scaleAlongPlaces(void* y, const float* gates, int begin, int first, int end) const
    {
        for (int own = warpIndex(); own < Shape::stored * run; own += threads / kWarpSize)
        {
            const int channel = begin + own;
            for (int p = first + laneIndex() * run; channel < Problem::k && p < end; p += kWarpSize * run)
            {
                const int valid = minOf(run, end - p);
                Operands operands;
                operands.load(inputs + scaledAt, valid, image, channel, p);
                float row[run];
                WPK_UNROLL
                for (int i = 0; i < run; ++i)
                    row[i] = Problem::ScaledOf::evaluate(gates[own], operands.values[i]);
                storeRowOf<Y, run>(y, Y::offset(image, channel, p), valid, valid, row);
            }
        }
    }

    WPK_DEVICE void scaleAlongChannels(void* y, const float* gates, int begin, int first, int end) const
    {
        constexpr int columns = minOf(Shape::stored, threads), lanes = threads / columns;
        constexpr int places = Shape::scales ? Shape::pixels : 1;
        constexpr int perRow = run * maxOf(1, Operands::count);
        constexpr int atOnce = maxOf(1, minOf(minOf(4, ceilDivide(places, lanes)), 64 / perRow));
        const int lane = thread / columns;
        const bool isKept = scalesKept && inputs[scaledAt] == inputs[0];
        for (int column = thread % columns; lane < lanes && column < Shape::stored; column += columns)
        {
            const int channel = begin + column * run;
            const int valid = minOf(run, Problem::k - channel), room = valid + Problem::rowPadding;
            if (room <= 0)
                continue;
            for (int p = first + lane; p < end; p += atOnce * lanes)
            {
                Operands operands[atOnce];
                WPK_UNROLL
                for (int j = 0; j < atOnce; ++j)
                {
                    const int place = minOf(p + j * lanes, end - 1);
                    if (valid > 0 && isKept)
                        takeKept(operands[j], place - first, column); // @kept_pixel
                    else if (valid > 0)
                        operands[j].load(inputs + scaledAt, valid, image, place, channel);
                }
                WPK_UNROLL
                for (int j = 0; j < atOnce; ++j)
                {
                    const int place = p + j * lanes;
                    if (place >= end)
                        continue;
                    float row[run];
                    WPK_UNROLL
                    for (int i = 0; i < run; ++i)
                        row[i] = i < valid ? Problem::ScaledOf::evaluate(gates[column * run + i], operands[j].values[i])
                                           : 0.0f;
                    storeRowOf<Y, run>(y, Y::offset(image, place, channel), valid, minOf(run, room), row);
                }
            }
        }
    }
};

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void squeeze(
    Inputs<3 + Problem::Hidden::count + Problem::Gates::count + Problem::Scaled::count> inputs, int n, void* y)
{
    using Block = detail::SqueezeBlock<Problem, Schedule>;
    WPK_SHARED(float, shared);
    (void)n; // the grid has as many clusters
    Block block;
    block.inputs = inputs.at;
    block.shared = shared;
    block.thread = static_cast<int>(threadIdx.x);
    block.rank = Schedule::blocks > 1 ? clusterRank() : 0;
    block.image = static_cast<int>(blockIdx.x) / Schedule::blocks;
    releaseIfEarly<Schedule>();
    if constexpr (Schedule::blocks > 1)
        block.prepareMeetings();
    if constexpr (Block::Shape::isStaged)
        block.stageWeights();
    if constexpr (Schedule::blocks > 1)
        waitCluster(); // @meetings_prepared
    waitIfEarly<Schedule>();
    block.loadOperands();
    if constexpr (Block::Shape::isKept)
        block.keepImages();
    block.pool();
    block.finishMeans();
    block.multiplyDown();
    block.multiplyUp();
    block.scale(y);
}

} // namespace wpk
