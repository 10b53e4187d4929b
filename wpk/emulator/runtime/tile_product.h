// The arithmetic of tensor-core tiles, shared by mma and wgmma: operands widened to float, one fused
// multiply-add after another along k, two 8-column tiles side by side in vectors of 16.
//
// Hardware adds aligned, truncated products, so results differ from it in the last places; small
// integers are exact on both.
#pragma once

#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "state.h"

namespace wpk::emulator
{

typedef float Lanes16 __attribute__((vector_size(64)));

template <emulated::MmaType T>
inline float widen(uint16 bits)
{
    if constexpr (T == emulated::MmaType::half)
    {
        _Float16 half;
        memcpy(&half, &bits, 2);
        return static_cast<float>(half);
    }
    else
    {
        const uint32 word = static_cast<uint32>(bits) << 16;
        float value;
        memcpy(&value, &word, 4);
        return value;
    }
}

// Eight consecutive 16-bit values to float.
template <emulated::MmaType T>
inline void widen8(const uint16* source, float* target)
{
#if defined(__AVX2__) && defined(__F16C__)
    const __m128i words = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source));
    if constexpr (T == emulated::MmaType::half)
    {
        _mm256_storeu_ps(target, _mm256_cvtph_ps(words));
    }
    else
    {
        _mm256_storeu_ps(target, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16)));
    }
#else
    uint16 values[8];
    memcpy(values, source, 16);
    for (int i = 0; i < 8; ++i)
        target[i] = widen<T>(values[i]);
#endif
}

inline float cutToTf32(uint32 bits)
{
    bits &= 0xffffe000u;
    float value;
    memcpy(&value, &bits, 4);
    return value;
}

// One register over the 32 lanes is an 8 x 8 row-major tile of 16-bit values (A), or of B transposed.
template <emulated::MmaType T>
inline void gatherA(const uint32* const* lanes, uint32 tile, float (*a)[16])
{
    alignas(64) uint32 words[4][32];
    for (int lane = 0; lane < 32; ++lane)
    {
        for (int j = 0; j < 4; ++j)
            words[j][lane] = lanes[lane][tile * 4 + j];
    }
    if constexpr (T == emulated::MmaType::tf32)
    {
        for (int j = 0; j < 4; ++j)
        {
            for (int lane = 0; lane < 32; ++lane)
            {
                a[lane / 4 + (j & 1) * 8][lane % 4 + (j >> 1) * 4] = cutToTf32(words[j][lane]);
            }
        }
    }
    else
    {
        for (int j = 0; j < 4; ++j)
        {
            const uint16* const halves = reinterpret_cast<const uint16*>(words[j]);
            for (int row = 0; row < 8; ++row)
                widen8<T>(halves + 8 * row, &a[row + (j & 1) * 8][(j >> 1) * 8]);
        }
    }
}

// An 8 x 8 row-major tile to its transpose, whose rows lie `stride` floats apart.
inline void transpose8(const float* source, float* target, int stride)
{
#if defined(__AVX2__)
    __m256 rows[8], pairs[8], quads[8];
    for (int i = 0; i < 8; ++i)
        rows[i] = _mm256_loadu_ps(source + 8 * i);
    for (int i = 0; i < 4; ++i)
    {
        pairs[2 * i] = _mm256_unpacklo_ps(rows[2 * i], rows[2 * i + 1]);
        pairs[2 * i + 1] = _mm256_unpackhi_ps(rows[2 * i], rows[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4)
    {
        quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
        quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
        quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
        quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int i = 0; i < 4; ++i)
    {
        _mm256_storeu_ps(target + i * stride, _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x20));
        _mm256_storeu_ps(target + (i + 4) * stride, _mm256_permute2f128_ps(quads[i], quads[4 + i], 0x31));
    }
#else
    for (int i = 0; i < 8; ++i)
    {
        for (int j = 0; j < 8; ++j)
            target[j * stride + i] = source[i * 8 + j];
    }
#endif
}

// One row of a 16 x 16 piece: two neighbouring 16 x 8 accumulator tiles of the fragment layout in mma.cuh.
// accumulators[lane] points at the four values of the left tile; the right tile's follow them.
inline Lanes16 readRow(float* const* accumulators, int row, bool pair)
{
    const int group = row & 7, half = row >> 3;
    alignas(64) float values[16] = {};
    for (int t = 0; t < 4; ++t)
    {
        const float* const source = accumulators[4 * group + t] + 2 * half;
        memcpy(values + 2 * t, source, 8);
        if (pair)
            memcpy(values + 8 + 2 * t, source + 4, 8);
    }
    Lanes16 lanes;
    memcpy(&lanes, values, 64);
    return lanes;
}

inline void writeRow(const Lanes16& lanes, float* const* accumulators, int row, bool pair)
{
    const int group = row & 7, half = row >> 3;
    alignas(64) float values[16];
    memcpy(values, &lanes, 64);
    for (int t = 0; t < 4; ++t)
    {
        float* const target = accumulators[4 * group + t] + 2 * half;
        memcpy(target, values + 2 * t, 8);
        if (pair)
            memcpy(target + 4, values + 8 + 2 * t, 8);
    }
}

// acc += A * B for a 16 x 16 piece. With `pair` false there is no right tile; `clear` starts from zero
// instead of the old values.
template <int K>
inline void multiplyPair(const float (*a)[16], const float (*b)[16], float* const* accumulators, bool pair, bool clear)
{
#if defined(__AVX512F__)
    constexpr int kRows = 16;
#else
    constexpr int kRows = 4; // eight accumulators of eight lanes: what sixteen registers hold
#endif
    for (int first = 0; first < 16; first += kRows)
    {
        Lanes16 sums[kRows];
        for (int i = 0; i < kRows; ++i)
            sums[i] = clear ? Lanes16{} : readRow(accumulators, first + i, pair);
        for (int k = 0; k < K; ++k)
        {
            Lanes16 column;
            memcpy(&column, b[k], 64);
#pragma GCC unroll 16
            for (int i = 0; i < kRows; ++i)
                sums[i] += a[first + i][k] * column;
        }
        for (int i = 0; i < kRows; ++i)
            writeRow(sums[i], accumulators, first + i, pair);
    }
}

} // namespace wpk::emulator
