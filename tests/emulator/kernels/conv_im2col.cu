// Convolution in half, NHWC: y[pixel, filter] (float) = sum over taps and channels of x * w, w as [filter][r][s][c].
// The tensor-copy unit finds the pixels of a tap; the rest is a product of 64 pixels x 64 filters by wgmma.
#include <wpk/kernels/barriers/mbarrier.cuh>
#include <wpk/kernels/copies/tma.cuh>
#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/wgmma/wgmma.cuh>

namespace
{
constexpr int kTile = 64, kChannels = 64, kStages = 4, kThreads = 128, kBytesTile = kTile * kChannels * 2;

struct Convolution
{
    int channels, filters, height, width; // height and width of the output
    int size, stride, pad;                // of the filter, alike in both directions
    WPK_DEVICE int steps() const
    {
        return size * size * (channels / kChannels);
    }
};

struct Ring
{
    wpk::SharedAddress shared;
    WPK_DEVICE wpk::SharedAddress stage(int step) const
    {
        return shared + step % kStages * 2 * kBytesTile;
    }
    WPK_DEVICE wpk::SharedAddress barrier(int step) const
    {
        return shared + kStages * 2 * kBytesTile + step % kStages * 8;
    }
};

// One tap and 64 channels: the pixels that it sees, and its weights.
WPK_DEVICE void request(
    const Ring& ring, const Convolution& conv, const wpk::TensorMap* x, const wpk::TensorMap* w, int step)
{
    const int blocks = conv.channels / kChannels, tap = step / blocks, channel = step % blocks * kChannels;
    const int pixel = static_cast<int>(blockIdx.y) * kTile;
    const int column = pixel % conv.width, row = pixel / conv.width % conv.height,
              image = pixel / conv.width / conv.height;
    const wpk::SharedAddress barrier = ring.barrier(step);
    wpk::arriveExpectBytes(barrier, 2 * kBytesTile);
    wpk::copyPixels(ring.stage(step), x, barrier,
        {channel, column * conv.stride - conv.pad, row * conv.stride - conv.pad, image},
        {static_cast<wpk::uint16>(tap % conv.size), static_cast<wpk::uint16>(tap / conv.size)});
    wpk::copyTensor(ring.stage(step) + kBytesTile, w, barrier,
        {tap * conv.channels + channel, static_cast<int>(blockIdx.x) * kTile});
}

WPK_DEVICE void storeTile(const float (&acc)[kTile / 2], float* y, int pixels, int filters)
{
    const int thread = static_cast<int>(threadIdx.x);
    const int first = static_cast<int>(blockIdx.y) * kTile + thread / 32 * 16 + thread % 32 / 4;
    WPK_UNROLL
    for (int i = 0; i < kTile / 2; i += 2)
    {
        const int pixel = first + i % 4 / 2 * 8;
        const int filter = static_cast<int>(blockIdx.x) * kTile + i / 4 * 8 + thread % 4 * 2;
        if (pixel < pixels && filter < filters)
            wpk::store(y + pixel * filters + filter, wpk::Vector<float, 2>{{acc[i], acc[i + 1]}});
    }
}
} // namespace

WPK_KERNEL(kThreads)
conv_im2col(WPK_GRID_CONSTANT const wpk::TensorMap x, WPK_GRID_CONSTANT const wpk::TensorMap w, int images,
    int channels, int filters, int height, int width, int size, int stride, int pad, float* y)
{
    WPK_SHARED(float, memory);
    const Ring ring{wpk::sharedAddress(memory)};
    const Convolution conv{channels, filters, height, width, size, stride, pad};
    const bool first = threadIdx.x == 0;
    const int steps = conv.steps();
    if (first)
    {
        for (int stage = 0; stage < kStages; ++stage)
            wpk::initBarrier(ring.barrier(stage), 1);
        wpk::fenceBarrierInit();
        for (int step = 0; step < wpk::minOf(kStages, steps); ++step)
            request(ring, conv, &x, &w, step);
    }
    __syncthreads();
    float acc[kTile / 2] = {};
    for (int step = 0; step < steps; ++step)
    {
        wpk::waitBarrier(ring.barrier(step), step / kStages & 1);
        const wpk::uint64 a = wpk::swizzledDescriptor(ring.stage(step));
        const wpk::uint64 b = wpk::swizzledDescriptor(ring.stage(step) + kBytesTile);
        wpk::fenceWgmma();
        WPK_UNROLL
        for (int k = 0; k < kChannels / 16; ++k)
            wpk::wgmma<wpk::Half>(acc, a + k * 2, b + k * 2, 1);
        wpk::commitWgmma();
        wpk::waitWgmma<0>(acc);
        __syncthreads(); // all have read the stage
        if (first && step + kStages < steps)
            request(ring, conv, &x, &w, step + kStages);
    }
    storeTile(acc, y, images * height * width, filters);
}
WPK_EXPORT(conv_im2col)
