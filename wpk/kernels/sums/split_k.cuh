// Split-K: a matrix product whose reduction is split among blocks. Each multiplies a range of the steps, writes its
// partial sums to memory, and the last block of a tile adds the parts, always in the same order, so that a result does
// not depend on who was last.
//
// The parts are counted along the grid's z axis, fastest: blockIdx.z = outer * Split + part.
#pragma once

#include <wpk/kernels/barriers/arrival.cuh>

namespace wpk
{

// Where parts meet; given only to kernels that split.
struct Partials
{
    void* tiles = nullptr;    // sums, fp32, fp64 or int32: a tile of every block
    void* counters = nullptr; // an int for every tile of the output, zero between launches
};

// This block's part of a reduction of Steps steps. With a Split of 1 it is all of it, known at compile time.
template <int Split, int Steps>
struct SplitRange
{
    int part, outer;  // of blockIdx.z
    int first, count; // steps

    WPK_DEVICE SplitRange()
        : part(Split == 1 ? 0 : static_cast<int>(blockIdx.z) % Split),
          outer(static_cast<int>(blockIdx.z) / Split),
          first(part * (Steps / Split) + minOf(part, Steps % Split)),
          count(Steps / Split + (part < Steps % Split ? 1 : 0))
    {
    }

    // Adds the parts of all blocks of the tile. False in every block but the one whose `accumulators` (an array of
    // floats, doubles or int32 of any rank) then hold the sum. `shared` is free for the block to use. With Others, the
    // block has more than Threads threads: those beyond call this too, and hold nothing.
    template <int Threads, bool Others = false, class Accumulators>
    WPK_DEVICE bool sum(Accumulators& accumulators, unsigned char* shared, const Partials& partials) const
    {
        if constexpr (Split > 1)
        {
            using Value = ElementOf<Accumulators>;
            constexpr int kCount = sizeof(Accumulators) / sizeof(Value);
            auto& values = reinterpret_cast<Value(&)[kCount]>(accumulators);
            const int tile =
                (outer * static_cast<int>(gridDim.y) + static_cast<int>(blockIdx.y)) * static_cast<int>(gridDim.x)
                + static_cast<int>(blockIdx.x);
            Value* const parts = static_cast<Value*>(partials.tiles) + tile * (int64(Split) * kCount * Threads);
            const bool holds = !Others || threadIdx.x < Threads;
            if (holds)
                write<Threads>(values, parts + part * (kCount * Threads));
            int* const counter = static_cast<int*>(partials.counters) + tile;
            if (!(Others ? arriveLast(counter, Split) : arriveLast(counter, Split, reinterpret_cast<int*>(shared))))
                return false;
            if (holds)
                add<Threads>(values, parts);
        }
        return true;
    }

private:
    static constexpr int kRegisters = 16384; // for words under way, in a block: a quarter of an SM's

    // Threads keep their values in vectors, and vectors of neighbouring threads lie side by side.
    template <class Value, int Count>
    static constexpr int width = minOf(Count, 16 / static_cast<int>(sizeof(Value)));

    template <int Threads, class Value, int Count>
    static WPK_DEVICE void write(const Value (&values)[Count], Value* to)
    {
        constexpr int V = width<Value, Count>;
        static_assert(Count % V == 0, "accumulators are whole vectors");
        WPK_UNROLL
        for (int i = 0; i < Count; i += V)
        {
            Vector<Value, V> vector;
            WPK_UNROLL
            for (int e = 0; e < V; ++e)
                vector[e] = values[i + e];
            store<Value, V>(to + i * Threads + static_cast<int>(threadIdx.x) * V, vector);
        }
    }

    // The first part, then the second, and so on: each thread what threads of its number wrote. Loads of kUnderWay
    // values go out together, of several parts or of a piece of one: fewer where accumulators or many threads leave
    // few registers.
    template <int Threads, class Value, int Count>
    static WPK_DEVICE void add(Value (&values)[Count], const Value* parts)
    {
        constexpr int kWords = sizeof(Value) / 4;
        constexpr int kUnderWay = minOf(Count * kWords <= 32 ? 64 : 32, kRegisters / Threads) / kWords;
        constexpr int kAhead = minOf(Split, maxOf(1, kUnderWay / Count));
        constexpr int kPieces = ceilDivide(Count, kUnderWay), kPiece = Count / kPieces;
        static_assert(Count % kPieces == 0 && kPiece % width<Value, Count> == 0, "accumulators are whole pieces");
        WPK_KEEP_LOOP
        for (int begin = 0; begin < Split; begin += kAhead)
        {
            WPK_UNROLL
            for (int piece = 0; piece < Count; piece += kPiece)
                addPiece<Threads, kAhead, kPiece>(values, piece, parts, begin);
        }
    }

    template <int Threads, int Parts, int Piece, class Value, int Count>
    static WPK_DEVICE void addPiece(Value (&values)[Count], int piece, const Value* parts, int begin)
    {
        constexpr int V = width<Value, Count>;
        Vector<Value, V> loaded[Parts][Piece / V];
        WPK_UNROLL
        for (int p = 0; p < Parts; ++p)
        {
            const Value* const from = parts + minOf(begin + p, Split - 1) * (Count * Threads) + piece * Threads;
            WPK_UNROLL
            for (int i = 0; i < Piece; i += V)
                loaded[p][i / V] = loadFresh<Value, V>(from + i * Threads + static_cast<int>(threadIdx.x) * V);
        }
        WPK_UNROLL
        for (int p = 0; p < Parts; ++p)
        {
            WPK_UNROLL
            for (int i = 0; i < Piece; ++i)
            {
                const Value value = loaded[p][i / V][i % V];
                if (begin + p == 0)
                    values[piece + i] = value;
                else if (begin + p < Split)
                    values[piece + i] += value;
            }
        }
    }
};

} // namespace wpk
