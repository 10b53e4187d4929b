// Convolution by warpgroups as an implicit matrix product (sm_90a): rows are output pixels (n, p, q), columns
// filters of a group, the reduction runs over (r, s, channel).
//
// TMA brings, for each tap and 128 bytes of its channels, the pixels that this tap reads, zeros where it reaches beyond
// the image (im2col mode); and the filters' part of them. A step has one to four such boxes, of any taps; behind the
// last one it is filled with zeros. Where taps are single and pixels lie densely, the input is a matrix.
//
// A group's channels are whole boxes, or whole products of one box: then the box brings its neighbours' channels, too,
// which are not multiplied.
//
// Grid: tiles of rows, tiles of columns, groups and the parts of split-K of each (split_k.cuh); or, of one group,
// persistent blocks. Problem and Schedule are named by conv.py; maps: the input's, the filters',
// and the residual's where it is in shared memory.
#pragma once

#include <wpk/kernels/wgmma/kernel.cuh>

namespace wpk
{

// Where a tile's boxes come from (producer.cuh).
template <class Problem, class Shape>
class ConvLoader
{
    using P = Problem;

public:
    static constexpr bool kConstantB = true;
    static constexpr int kOfTap = ceilDivide(P::c, Shape::kBoxDepth), kBoxes = P::filter_h * P::filter_w * kOfTap;
    static constexpr int kSteps = ceilDivide(kBoxes, Shape::boxes);

    template <int Maps, class Rows>
    WPK_DEVICE ConvLoader(const TensorMaps<Maps>& maps, const OutputWindow<Rows>& tile)
        : x_(maps.at[0]),
          filters_(maps.at[1]),
          firstRow_(tile.firstRow + boxA_.firstRow()),
          firstFilter_(tile.firstColumn + boxB_.firstRow()),
          firstChannel_(P::groups == 1 ? 0 : tile.firstColumn / P::k * P::c) // @group_channels
    {
        const int image = firstRow_ / (P::p * P::q), pixel = firstRow_ % (P::p * P::q);
        image_ = image;
        h_ = pixel / P::q * P::stride_h - P::pad_h;
        w_ = pixel % P::q * P::stride_w - P::pad_w;
    }

    WPK_DEVICE void prefetch() const
    {
        prefetchTensorMap(x_);
        prefetchTensorMap(filters_);
    }

    WPK_DEVICE void copyA(SharedAddress target, SharedAddress barrier, int step) const
    {
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
        {
            const Place place(step * Shape::boxes + box);
            const SharedAddress to = target + box * Shape::boxBytesA;
            const int channel = place.channel < kBehind ? firstChannel_ + place.channel : P::groups * kBehind;
            if constexpr (P::x_is_matrix)
            {
                boxA_.copy(to, x_, barrier, {channel, firstRow_});
            }
            else
            {
                const uint16 right = static_cast<uint16>(place.tap % P::filter_w * P::dilation_w);
                const uint16 down = static_cast<uint16>(place.tap / P::filter_w * P::dilation_h);
                boxA_.copyIm2col(to, x_, barrier, {channel, w_, h_, image_}, {right, down});
            }
        }
    }

    WPK_DEVICE void copyB(SharedAddress target, SharedAddress barrier, int step) const
    {
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
        {
            const Place place(step * Shape::boxes + box);
            boxB_.copy(target + box * Shape::boxBytesB, filters_, barrier, {place.channel, place.tap, firstFilter_});
        }
    }

private:
    static constexpr int kBehind = kOfTap * Shape::kBoxDepth; // a group's channels

    // Where a box of the reduction lies; those behind the last one lie behind the channels, where zeros come from.
    struct Place
    {
        int tap, channel;
        WPK_DEVICE explicit Place(int box) : tap(box / kOfTap), channel(box % kOfTap * Shape::kBoxDepth)
        {
            if (kBoxes % Shape::boxes != 0 && box >= kBoxes)
            {
                tap = 0;
                channel = kBehind;
            }
        }
    };

    const TensorMap *x_, *filters_;
    MulticastBox<typename Shape::Multicast, Shape::multicastA, Shape::boxRowsA> boxA_;
    MulticastBox<typename Shape::Multicast, Shape::multicastB, Shape::boxRowsB> boxB_;
    int firstRow_, firstFilter_; // of what this block asks for
    int firstChannel_;           // of the tile's group
    int image_, h_, w_;          // where the first pixel's window begins
};

template <class Problem, class Schedule>
WPK_DEVICE void convWgmma(Inputs<2 + Problem::Operands::count + kInputLimits<Problem>> inputs, int n,
    const WgmmaMaps<Schedule>& maps, void* y, const Partials& partials = {})
{
    using Shape = WgmmaShape<typename Problem::Multiply, Schedule, Problem::c, kStoresByColumns<Problem>>;
    using Loader = ConvLoader<Problem, Shape>;
    WPK_SHARED(unsigned char, shared);

    const int group = Problem::groups == 1 ? 0 : static_cast<int>(blockIdx.z) / Schedule::split;
    const int filters = (group + 1) * Problem::k;
    const OutputWindow output{PixelRows<Problem::p, Problem::q>{}, inputs.at + 2, y, n * (Problem::p * Problem::q),
        filters, group + 1 == Problem::groups ? filters + Problem::y_padding : filters};
    const auto limits = inputLimits<Problem, Loader::kOfTap * Shape::kBoxDepth>(inputs);
    const int firstRow = static_cast<int>(blockIdx.x) * Shape::blockM;
    const int firstFilter = group * Problem::k + static_cast<int>(blockIdx.y) * Shape::blockN;
    computeWgmma<Problem, Schedule, Shape, Loader>(
        shared, maps, Shape::persistent ? output : output.at(firstRow, firstFilter), partials, limits);
}

} // namespace wpk
