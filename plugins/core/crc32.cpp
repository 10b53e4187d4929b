#include "plugins/core/crc32.hpp"

#include <array>

#if defined(__x86_64__)
#include <emmintrin.h>
#include <wmmintrin.h>
#endif

namespace wpk
{
namespace
{

constexpr std::uint32_t polynomial = 0xEDB88320; // reflected: the lowest bit is the highest power

constexpr std::uint32_t times_x(std::uint32_t value)
{
    return value >> 1U ^ ((value & 1U) != 0 ? polynomial : 0);
}

// Eight bytes at a time: table k is the effect of a byte with k more behind it.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Tables make_tables()
{
    Tables tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte)
    {
        std::uint32_t rest = byte;
        for (int bit = 0; bit < 8; ++bit)
        {
            rest = times_x(rest);
        }
        tables[0][byte] = rest;
    }
    for (std::size_t k = 1; k < tables.size(); ++k)
    {
        for (std::size_t byte = 0; byte < 256; ++byte)
        {
            const std::uint32_t rest = tables[k - 1][byte];
            tables[k][byte] = rest >> 8U ^ tables[0][rest & 0xFFU];
        }
    }
    return tables;
}

constexpr Tables tables = make_tables();

std::uint32_t by_tables(std::uint32_t state, const std::byte* data, std::size_t size) noexcept
{
    const auto at = [&](std::size_t i)
    {
        return std::to_integer<std::uint32_t>(data[i]);
    };
    for (; size >= 8; data += 8, size -= 8)
    {
        const std::uint32_t first = state ^ (at(0) | at(1) << 8U | at(2) << 16U | at(3) << 24U);
        state = tables[7][first & 0xFFU] ^ tables[6][first >> 8U & 0xFFU] ^ tables[5][first >> 16U & 0xFFU]
                ^ tables[4][first >> 24U] ^ tables[3][at(4)] ^ tables[2][at(5)] ^ tables[1][at(6)] ^ tables[0][at(7)];
    }
    for (; size > 0; ++data, --size)
    {
        state = state >> 8U ^ tables[0][(state ^ at(0)) & 0xFFU];
    }
    return state;
}

#if defined(__x86_64__)

// Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009: four lanes of
// 16 bytes are folded into the next 64 bytes, then the lanes into one, whose CRC is that of everything.
constexpr std::size_t lane = 16, lanes = 4, block = lane * lanes;

// x to this power modulo the polynomial, as a carry-less product of reflected numbers takes it.
constexpr long long power_of_x(std::size_t power)
{
    std::uint32_t value = 0x80000000;
    for (std::size_t i = 0; i < power; ++i)
    {
        value = times_x(value);
    }
    return static_cast<long long>(value) << 1U;
}

// What moves the two halves of a lane over so many bytes.
template <std::size_t bytes>
__m128i shift_over() noexcept
{
    constexpr long long low = power_of_x(8 * bytes + 32), high = power_of_x(8 * bytes - 32);
    return _mm_set_epi64x(high, low);
}

__attribute__((target("pclmul"))) __m128i folded(__m128i value, __m128i shift, __m128i onto) noexcept
{
    const __m128i low = _mm_clmulepi64_si128(value, shift, 0x00), high = _mm_clmulepi64_si128(value, shift, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), onto);
}

__m128i load(const std::byte* data) noexcept
{
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(data));
}

// Of whole blocks, two at least.
__attribute__((target("pclmul"))) std::uint32_t by_products(
    std::uint32_t state, const std::byte* data, std::size_t size) noexcept
{
    __m128i sums[lanes];
    for (std::size_t i = 0; i < lanes; ++i)
    {
        sums[i] = load(data + i * lane);
    }
    sums[0] = _mm_xor_si128(sums[0], _mm_cvtsi32_si128(static_cast<int>(state)));
    const __m128i over_block = shift_over<block>(), over_lane = shift_over<lane>();
    for (std::size_t at = block; at < size; at += block)
    {
        for (std::size_t i = 0; i < lanes; ++i)
        {
            sums[i] = folded(sums[i], over_block, load(data + at + i * lane));
        }
    }
    for (std::size_t i = 1; i < lanes; ++i)
    {
        sums[i] = folded(sums[i - 1], over_lane, sums[i]);
    }
    std::byte rest[lane];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(rest), sums[lanes - 1]);
    return by_tables(0, rest, lane);
}

#endif

} // namespace

void Crc32::add(const std::byte* data, std::size_t size) noexcept
{
#if defined(__x86_64__)
    static const bool has_products = __builtin_cpu_supports("pclmul");
    const std::size_t whole = size - size % block;
    if (has_products && whole >= 2 * block)
    {
        state_ = by_products(state_, data, whole);
        data += whole;
        size -= whole;
    }
#endif
    state_ = by_tables(state_, data, size);
}

} // namespace wpk
