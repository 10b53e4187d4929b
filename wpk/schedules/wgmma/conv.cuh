// Convolution by warpgroups as an implicit matrix product (sm_90a): rows are output pixels (n, p, q), columns
// filters, the reduction runs over (r, s, channel).
//
// Tensor copies bring, for each tap and 128 bytes of its channels, the pixels that this tap reads, zeros where it
// reaches beyond the image (im2col mode); and the filters' part of them. A step has one to four such boxes, of any
// taps; behind the last one it is filled with zeros. Where taps are single and pixels lie densely, the input is a
// matrix.
//
// Grid: tiles of rows, tiles of columns and the parts of each (split_k.cuh); or blocks that stay
// (wgmma_persistent.cuh). Problem and Schedule are named by
// conv_wgmma.py; maps: the input's, the filters'.
#pragma once

#include <wpk/kernels/wgmma/persistent.cuh>

namespace wpk
{

template <class Problem, class Shape>
class ConvWgmmaTiles
{
    using P = Problem;

public:
    static constexpr bool kConstantB = true;
    static constexpr int kOfTap = ceilDivide(P::c, Shape::kBoxDepth), kBoxes = P::filter_h * P::filter_w * kOfTap;
    static constexpr int kSteps = ceilDivide(kBoxes, Shape::boxes);

    WPK_DEVICE ConvWgmmaTiles(const TensorMaps<2>& maps, int firstRow, int firstFilter)
        : x_(maps.at[0]),
          filters_(maps.at[1]),
          partA_(tilePart<Shape::partsA>()),
          partB_(tilePart<Shape::partsB>()),
          firstRow_(firstRow + partA_ * Shape::partRowsA),
          firstFilter_(firstFilter + partB_ * Shape::partRowsB)
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
            // @place_of_part_a
            const SharedAddress to = target + box * Shape::boxBytesA + partA_ * (Shape::boxBytesA / Shape::partsA);
            if constexpr (P::x_is_matrix)
            {
                copyTilePart<Shape::partsA>(to, x_, barrier, {place.channel, firstRow_});
            }
            else
            {
                const uint16 right = static_cast<uint16>(place.tap % P::filter_w * P::dilation_w);
                const uint16 down = static_cast<uint16>(place.tap / P::filter_w * P::dilation_h);
                copyPixelsPart<Shape::partsA>(to, x_, barrier, {place.channel, w_, h_, image_}, {right, down});
            }
        }
    }

    WPK_DEVICE void copyB(SharedAddress target, SharedAddress barrier, int step) const
    {
        WPK_UNROLL
        for (int box = 0; box < Shape::boxes; ++box)
        {
            const Place place(step * Shape::boxes + box);
            // @place_of_part_b
            const SharedAddress to = target + box * Shape::boxBytesB + partB_ * (Shape::boxBytesB / Shape::partsB);
            copyTilePart<Shape::partsB>(to, filters_, barrier, {place.channel, place.tap, firstFilter_});
        }
    }

private:
    // Where a box of the reduction lies; those behind the last one lie behind the channels, where zeros come from.
    struct Place
    {
        int tap, channel;
        WPK_DEVICE explicit Place(int box) : tap(box / kOfTap), channel(box % kOfTap * Shape::kBoxDepth)
        {
            if (kBoxes % Shape::boxes != 0 && box >= kBoxes)
            {
                tap = 0;
                channel = kOfTap * Shape::kBoxDepth;
            }
        }
    };

    const TensorMap *x_, *filters_;
    int partA_, partB_;          // that this block asks for
    int firstRow_, firstFilter_; // of these parts
    int image_, h_, w_;          // where the first pixel's window begins
};

template <class Problem, class Schedule>
WPK_DEVICE void convWgmma(Inputs<2 + Problem::Operands::count + kInputLimits<Problem>> inputs, int n,
    const TensorMaps<2>& maps, void* y, const Partials& partials = {})
{
    using Shape = WgmmaShape<typename Problem::Multiply, Schedule, Problem::c>;
    using Tiles = ConvWgmmaTiles<Problem, Shape>;
    WPK_SHARED(unsigned char, shared);

    static_assert(
        Shape::stages == 2 || Schedule::persistent != 0 || Shape::stages <= ceilDivide(Tiles::kSteps, Schedule::split),
        "no more stages than a part has steps");
    constexpr int kStored = Problem::k + Problem::y_padding;
    const PixelRows<Problem::p, Problem::q> rows;
    const int rowLimit = n * (Problem::p * Problem::q);
    const auto limits = inputLimits<Problem, Tiles::kOfTap * Shape::kBoxDepth>(inputs);
    if constexpr (Schedule::persistent != 0)
    {
        const auto tilesAt = [&](int firstRow, int firstFilter)
        {
            return Tiles(maps, firstRow, firstFilter);
        };
        computeWgmmaTiles<Problem, Shape, Tiles::kSteps, kStored>(
            shared, tilesAt, rows, inputs.at + 2, y, rowLimit, Problem::k, limits);
    }
    else
    {
        const SplitRange<Schedule::split, Tiles::kSteps> range;
        const int firstRow = static_cast<int>(blockIdx.x) * Shape::blockM;
        const int firstFilter = static_cast<int>(blockIdx.y) * Shape::blockN;
        const Tiles tiles(maps, firstRow, firstFilter);
        computeWgmmaTile<Problem, Shape>(shared, range, tiles, partials, rows, inputs.at + 2, y, firstRow, rowLimit,
            firstFilter, Problem::k, kStored, limits);
    }
}

} // namespace wpk
