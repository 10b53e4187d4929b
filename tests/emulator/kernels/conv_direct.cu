// A 3 x 3 convolution of stride 1 and padding 1, NCHW, in float on the ordinary cores: a thread computes
// four pixels of a row for four filters from tiles in static shared memory. W is a multiple of 4 (at
// most 32), C of kChannels, K of 16.
#include <wpk/kernels/copies/vector.cuh>

namespace
{
constexpr int kRows = 8, kChannels = 4, kFilters = 16, kThreads = 256, kWidth = 32;
}

WPK_KERNEL(kThreads)
conv_direct(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int channels, int height,
    int width, int filters)
{
    __shared__ float image[kChannels][kRows + 2][kWidth + 2 + 2];
    __shared__ float weights[kChannels][9][kFilters];
    const int thread = static_cast<int>(threadIdx.x), quad = thread % 8, row = thread / 8 % 8, group = thread / 64;
    const int firstRow = static_cast<int>(blockIdx.x) * kRows, firstFilter = static_cast<int>(blockIdx.y) * kFilters;
    const long image0 = static_cast<long>(blockIdx.z) * channels * height * width;
    float acc[4][4] = {};
    for (int firstChannel = 0; firstChannel < channels; firstChannel += kChannels)
    {
        for (int i = thread; i < kChannels * (kRows + 2) * (kWidth + 2); i += kThreads)
        {
            const int c = i / ((kRows + 2) * (kWidth + 2)), r = i / (kWidth + 2) % (kRows + 2), q = i % (kWidth + 2);
            const int iy = firstRow + r - 1, ix = q - 1;
            const bool inside = iy >= 0 && iy < height && ix >= 0 && ix < width;
            image[c][r][q] =
                inside ? x[image0 + (static_cast<long>(firstChannel + c) * height + iy) * width + ix] : 0.0f;
        }
        for (int i = thread; i < kChannels * 9 * kFilters; i += kThreads)
        {
            const int c = i / (9 * kFilters), tap = i / kFilters % 9, k = i % kFilters;
            weights[c][tap][k] = w[((firstFilter + k) * channels + firstChannel + c) * 9 + tap];
        }
        __syncthreads();
        for (int c = 0; c < kChannels; ++c)
        {
            WPK_UNROLL
            for (int tap = 0; tap < 9; ++tap)
            {
                float pixels[4], filter[4];
                WPK_UNROLL
                for (int i = 0; i < 4; ++i)
                {
                    pixels[i] = image[c][row + tap / 3][quad * 4 + i + tap % 3];
                    filter[i] = weights[c][tap][group * 4 + i];
                }
                WPK_UNROLL
                for (int i = 0; i < 4; ++i)
                {
                    WPK_UNROLL
                    for (int k = 0; k < 4; ++k)
                        acc[k][i] = fmaf(pixels[i], filter[k], acc[k][i]);
                }
            }
        }
        __syncthreads();
    }
    const int oy = firstRow + row, ox = quad * 4;
    if (oy >= height || ox >= width)
        return;
    for (int k = 0; k < 4; ++k)
    {
        const int filter = firstFilter + group * 4 + k;
        const wpk::Vector<float, 4> pixels{{acc[k][0], acc[k][1], acc[k][2], acc[k][3]}};
        wpk::store(y + ((static_cast<long>(blockIdx.z) * filters + filter) * height + oy) * width + ox, pixels);
    }
}
WPK_EXPORT(conv_direct)
