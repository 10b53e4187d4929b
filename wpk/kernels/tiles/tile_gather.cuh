// A loader that goes through registers: any strides, any type, converted on the way.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/mma/channel_limits.cuh>
#include <wpk/kernels/numbers/scalar.cuh>
#include <wpk/kernels/tiles/tile_source.cuh>

namespace wpk
{

// Fills tiles of Rows x Depth through registers: begin() starts the loads, finish() converts and hands
// Sink::put(stage, row, column, values) groups of Sink::kGroup elements of a row. V elements travel
// together (they divide the group). Neighbouring threads take neighbouring rows where AlongRows, for
// sources that are contiguous across the reduction, else neighbouring groups of a row. Limits: channel_limits.cuh.
template <class Source, class Sink, int Rows, int Depth, int Threads, int V, bool AlongRows, class Limits = NoLimits>
class GatherLoader
{
    using T = typename Source::Type;
    static constexpr int kGroup = Sink::kGroup;
    static constexpr int kGroupsARow = Depth / kGroup;
    static constexpr int kGroups = Rows * kGroupsARow;
    static constexpr int kCount = ceilDivide(kGroups, Threads);
    static_assert(Depth % kGroup == 0 && kGroup % V == 0, "groups divide rows, vectors divide groups");
    // Threads taking several groups of one row keep one position for it.
    static constexpr bool kRowRepeats = AlongRows && Threads % Rows == 0;
    static constexpr int kRowsKept = kRowRepeats ? 1 : kCount;

public:
    static constexpr bool kAsynchronous = false; // between begin() and finish() values lie in registers

    // The first tile begins at row `firstRow` and column `firstColumn` of the source.
    WPK_DEVICE GatherLoader(const Source& source, int firstRow, int firstColumn, const Limits& limits = Limits())
        : source_(source), depth_(firstColumn), limits_(limits)
    {
        WPK_UNROLL
        for (int i = 0; i < kRowsKept; ++i)
            rows_[i] = source_.row(firstRow + rowOf(i));
    }

    WPK_DEVICE void begin(unsigned char*)
    {
        WPK_UNROLL
        for (int i = 0; i < kCount; ++i)
        {
            WPK_UNROLL
            for (int e = 0; e < kGroup; e += V)
            {
                if (kGroups % Threads == 0 || groupOf(i) < kGroups)
                    fetch(rows_[kRowRepeats ? 0 : i], depth_ + columnOf(i) + e, i, e);
            }
        }
        depth_ += Depth;
    }

    WPK_DEVICE void finish(unsigned char* stage)
    {
        WPK_UNROLL
        for (int i = 0; i < kCount; ++i)
        {
            if (kGroups % Threads == 0 || groupOf(i) < kGroups)
            {
                limits_.keepValues(values_[i], depth_ - Depth + columnOf(i));
                Sink::put(stage, rowOf(i), columnOf(i), values_[i]);
            }
        }
    }

private:
    static WPK_DEVICE int groupOf(int i)
    {
        return static_cast<int>(threadIdx.x) + i * Threads;
    }
    static WPK_DEVICE int rowOf(int i)
    {
        return AlongRows ? groupOf(i) % Rows : groupOf(i) / kGroupsARow;
    }
    static WPK_DEVICE int columnOf(int i)
    {
        return (AlongRows ? groupOf(i) / Rows : groupOf(i) % kGroupsARow) * kGroup;
    }

    WPK_DEVICE void fetch(const typename Source::Row& row, int column, int i, int e)
    {
        const T* address;
        const int valid = source_.template locate<V>(row, source_.column(column), address);
        Vector<T, V> vector = zeroVector<T, V>();
        if (valid == V)
        {
            vector = load<T, V>(address);
        }
        else if constexpr (V > 1)
        {
            WPK_UNROLL
            for (int v = 0; v < V; ++v)
            {
                if (v < valid)
                    vector[v] = address[v];
            }
        }
        WPK_UNROLL
        for (int v = 0; v < V; ++v)
            values_[i][e + v] = vector[v];
    }

    Source source_;
    int depth_; // where the next tile begins
    Limits limits_;
    typename Source::Row rows_[kRowsKept];
    T values_[kCount][kGroup];
};

} // namespace wpk
