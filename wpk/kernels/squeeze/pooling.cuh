// Means of channels over the images of a squeeze (wpk/schedules/squeeze.cuh).
#pragma once

#include <wpk/kernels/copies/async_copy.cuh>
#include <wpk/kernels/rows/row_products.cuh>
#include <wpk/kernels/squeeze/block.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

namespace detail
{

// Asks for all that this block pools. A thread asks for what it alone reads again.
template <class Problem, class Schedule>
WPK_DEVICE void keepImages(const SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using X = typename Problem::X;
    constexpr int run = Shape::run;
    using T = typename X::Type;
    constexpr int chunk = 16 / static_cast<int>(sizeof(T));
    static_assert(!Shape::isKept || X::template accessWidth<run>() == chunk, "copies of 16 bytes");
    const int lane = block.thread / Shape::columns;
    for (int column = block.thread % Shape::columns; lane < Shape::lanes && column < Shape::pooled;
        column += Shape::columns)
    {
        const int channel = block.firstChannel() + column * run;
        for (int p = block.firstPixel() + lane; channel < Problem::c && p < block.endPixel(); p += Shape::lanes)
        {
            const T* const from = static_cast<const T*>(block.inputs[0]) + X::offset(block.image, p, channel);
            T* const to = block.kept(p - block.firstPixel(), column);
            WPK_UNROLL
            for (int i = 0; i < run; i += chunk)
                copyAsync<16>(sharedAddress(to + i), from + i);
        }
    }
    commitCopies();
}

// A warp sums a channel.
template <class Problem, class Schedule>
WPK_DEVICE void poolAlongPixels(const SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using X = typename Problem::X;
    constexpr int run = Shape::run, threads = Shape::threads;
    for (int own = warpIndex(); own < Shape::pooled * run; own += threads / kWarpSize)
    {
        const int channel = block.firstChannel() + own;
        float sum = 0.0f;
        for (int p = block.firstPixel() + laneIndex() * run; channel < Problem::c && p < block.endPixel();
            p += kWarpSize * run)
        {
            float row[run];
            loadRowAs<X, run>(
                block.inputs[0], X::offset(block.image, channel, p), minOf(run, block.endPixel() - p), row);
            WPK_UNROLL
            for (int i = 0; i < run; ++i)
                sum += row[i];
        }
        sum = warpSum(sum);
        if (laneIndex() == 0)
            block.shared[Shape::sumsAt + own] = sum;
    }
}

// Neighbouring threads have neighbouring runs of channels, and lanes of threads every few pixels.
template <class Problem, class Schedule>
WPK_DEVICE void poolAlongChannels(const SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using X = typename Problem::X;
    constexpr int run = Shape::run, threads = Shape::threads;
    constexpr int columns = Shape::columns, lanes = Shape::lanes, pooled = Shape::pooled;
    constexpr int atOnce = minOf(8, ceilDivide(Shape::pixels, lanes));
    const int lane = block.thread / columns;
    if constexpr (Shape::isKept)
        waitCopies<0>(); // @images_there
    for (int column = block.thread % columns; lane < lanes && column < pooled; column += columns)
    {
        const int channel = block.firstChannel() + column * run, valid = minOf(run, Problem::c - channel);
        float sums[run] = {};
        for (int p = block.firstPixel() + lane; valid > 0 && p < block.endPixel(); p += atOnce * lanes) // @first_pixel
        {
            typename X::Type rows[atOnce][run];
            WPK_UNROLL
            for (int j = 0; j < atOnce; ++j) // all under way at once; behind the end the last one again
            {
                const int pixel = minOf(p + j * lanes, block.endPixel() - 1);
                if constexpr (Shape::isKept)
                    block.loadKept(pixel - block.firstPixel(), column, rows[j]);
                else
                    loadRow<X, run>(block.inputs[0], X::offset(block.image, pixel, channel), valid, rows[j]);
            }
            WPK_UNROLL
            for (int j = 0; j < atOnce; ++j)
            {
                WPK_UNROLL
                for (int i = 0; i < run; ++i)
                    sums[i] += p + j * lanes < block.endPixel() ? toFloat(rows[j][i]) : 0.0f; // @pooled
            }
        }
        float* const target = block.shared + lane * Shape::lanePitch + column * run;
        store<float, 4>(target, {sums[0], sums[1], sums[2], sums[3]});
        store<float, 4>(target + 4, {sums[4], sums[5], sums[6], sums[7]});
    }
    __syncthreads(); // @lanes_pooled
    constexpr int channels = pooled * run;
    constexpr int G = minOf(minOf(kWarpSize, powerFrom(lanes)), powerUpTo(maxOf(1, threads / channels)));
    for (int first = 0; first < channels; first += threads / G)
    {
        const int own = first + block.thread / G;
        float sum = 0.0f;
        for (int from = block.thread % G; own < channels && from < lanes; from += G)
            sum += block.shared[from * Shape::lanePitch + own];
        WPK_UNROLL
        for (int distance = G / 2; distance > 0; distance /= 2)
            sum += shuffleXor(sum, distance);
        if (block.thread % G == 0 && own < channels)
            block.shared[Shape::sumsAt + own] = sum;
    }
}

// The sums of this block's channels over its pixels, to shared memory.
template <class Problem, class Schedule>
WPK_DEVICE void poolImages(const SqueezeBlock<Problem, Schedule>& block)
{
    if constexpr (Problem::pixelsFastest)
        poolAlongPixels(block);
    else
        poolAlongChannels(block);
}

// The means of this block's slice.
template <class Problem, class Schedule>
WPK_DEVICE void finishMeans(const SqueezeBlock<Problem, Schedule>& block)
{
    using Shape = SqueezeShape<Problem, Schedule>;
    using Block = SqueezeBlock<Problem, Schedule>;
    constexpr int run = Shape::run, threads = Shape::threads;
    constexpr int ofSlice = Shape::slice * run;
    __syncthreads(); // @pooled_by_all
    const float* sums = block.shared + Shape::sumsAt;
    if constexpr (Shape::byPixels)
    {
        const int place = Shape::allSumsAt + block.rank * ofSlice; // @sums_placed
        block.template sendToAll<ofSlice / 4>(Block::sumsMeet, sums, ofSlice, Shape::pooled * run, place);
        waitBarrierOfCluster(block.barrierOf(Block::sumsMeet), 0); // @sums_there
        sums = block.shared + Shape::allSumsAt;
    }
    for (int own = block.thread; own < ofSlice; own += threads)
    {
        const int channel = block.rank * ofSlice + own;
        float mean = 0.0f;
        if (channel < Problem::c)
        {
            const float sum = Shape::byPixels ? block.sumOfBlocks(sums + own, ofSlice) : sums[own];
            const float none[1] = {};
            mean = Problem::MeansOf::evaluate(sum / Problem::pixels, none);
        }
        block.shared[Shape::rowAt + own] = mean;
    }
}

} // namespace detail

} // namespace wpk
