// Boxes that do not overlap others of a higher score; a block has a class of a batch.
//
// Each thread remembers by a bit which of its boxes are still to be looked at. In turn the best of all is found and
// selected, and all that overlap it are forgotten.
//
// Problem: Boxes over (n, count, 4); Scores over (n, classes, count); Y over (n, classes, most, 3); centred; overlap
// and threshold (hasThreshold) as fp32 bits; classes; count; most.
#pragma once

#include <wpk/kernels/barriers/early_launch.cuh>
#include <wpk/kernels/operands/tensor.cuh>
#include <wpk/kernels/places/index.cuh>

namespace wpk
{

namespace detail
{

// The sides of a box.
struct BoxSides
{
    float top, left, bottom, right;

    template <bool Centred>
    static WPK_DEVICE BoxSides of(const float (&box)[4])
    {
        if constexpr (Centred)
        {
            const float width = box[2] / 2.0f, height = box[3] / 2.0f;
            return {box[1] - height, box[0] - width, box[1] + height, box[0] + width};
        }
        else
        {
            return {fminf(box[0], box[2]), fminf(box[1], box[3]), fmaxf(box[0], box[2]), fmaxf(box[1], box[3])};
        }
    }

    WPK_DEVICE float area() const
    {
        return (right - left) * (bottom - top);
    }

    // Whether the shared area is more than `part` of what both cover.
    WPK_DEVICE bool overlaps(const BoxSides& other, float part) const
    {
        const float across = fminf(right, other.right) - fmaxf(left, other.left);
        const float down = fminf(bottom, other.bottom) - fmaxf(top, other.top);
        if (!(across > 0.0f) || !(down > 0.0f))
            return false;
        const float shared = across * down, one = area(), two = other.area(), whole = one + two - shared;
        return shared > 0.0f && one > 0.0f && two > 0.0f && whole > 0.0f && shared / whole > part;
    }
};

// Whether a box comes before another; a number of -1 is none.
WPK_DEVICE bool comesBefore(float score, int box, float otherScore, int other)
{
    return box >= 0 && (other < 0 || score > otherScore || (score == otherScore && box < other)); // @lower_first
}

// The best box of all threads, for each of them. All threads of a block call it.
template <int Threads>
WPK_DEVICE int bestOfBlock(float score, int box)
{
    __shared__ float scores[Threads];
    __shared__ int boxes[Threads];
    const int thread = static_cast<int>(threadIdx.x);
    scores[thread] = score;
    boxes[thread] = box;
    WPK_KEEP_LOOP
    for (int half = Threads / 2; half > 0; half /= 2)
    {
        __syncthreads(); // @halves_written
        if (thread < half && comesBefore(scores[thread + half], boxes[thread + half], scores[thread], boxes[thread]))
        {
            scores[thread] = scores[thread + half];
            boxes[thread] = boxes[thread + half];
        }
    }
    __syncthreads(); // @best_known
    const int best = boxes[0];
    __syncthreads(); // before the next writes
    return best;
}

} // namespace detail

template <class Problem, class Schedule>
WPK_DEVICE void boxSelection(Inputs<2> inputs, int n, void* y)
{
    using Boxes = typename Problem::Boxes;
    using Scores = typename Problem::Scores;
    using Y = typename Problem::Y;
    constexpr int threads = Schedule::threads, each = ceilDivide(Problem::count, threads);
    const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
    const int image = block / Problem::classes, type = block % Problem::classes;
    const auto* const scores = static_cast<const typename Scores::Type*>(inputs.at[1]) + Scores::offset(image, type, 0);
    int64* const rows = static_cast<int64*>(y);
    const float overlap = asFloat(Problem::overlap), threshold = asFloat(Problem::threshold);
    startIfEarly<Schedule>(); // @previous_awaited
    uint64 waiting = 0;       // bit i: box thread + i * threads
    for (int i = 0; i < each; ++i)
    {
        const int box = thread + i * threads;
        if (box >= Problem::count)
            break;
        const float score = toFloat(load<typename Scores::Type, 1>(scores + box * Scores::rowStride)[0]);
        if (Problem::hasThreshold ? score > threshold : score == score) // @above_threshold
            waiting |= uint64(1) << i;
    }
    int selected = 0;
    WPK_KEEP_LOOP
    for (; selected < Problem::most; ++selected)
    {
        float best = 0.0f;
        int found = -1;
        for (int i = 0; i < each; ++i)
        {
            const int box = thread + i * threads;
            if ((waiting >> i & 1) == 0)
                continue;
            const float score = toFloat(load<typename Scores::Type, 1>(scores + box * Scores::rowStride)[0]);
            if (detail::comesBefore(score, box, best, found))
            {
                best = score;
                found = box;
            }
        }
        found = detail::bestOfBlock<threads>(best, found);
        if (found < 0)
            break;
        if (thread < 3)
        {
            const int64 number = thread == 0 ? image : thread == 1 ? type : found;
            store<int64, 1>(rows + Y::offset(image, type, selected, thread), {{number}});
        }
        float sides[4];
        loadRowAs<Boxes, 4>(inputs.at[0], Boxes::offset(image, found, 0), 4, sides);
        const detail::BoxSides chosen = detail::BoxSides::of<Problem::centred>(sides);
        for (int i = 0; i < each; ++i)
        {
            const int box = thread + i * threads;
            if ((waiting >> i & 1) == 0)
                continue;
            loadRowAs<Boxes, 4>(inputs.at[0], Boxes::offset(image, box, 0), 4, sides);
            if (box == found || detail::BoxSides::of<Problem::centred>(sides).overlaps(chosen, overlap)) // @forgotten
                waiting &= ~(uint64(1) << i);
        }
    }
    for (int i = selected * 3 + thread; i < Problem::most * 3; i += threads)
        store<int64, 1>(rows + Y::offset(image, type, i / 3, i % 3), {{-1}});
    (void)n;
}

} // namespace wpk
