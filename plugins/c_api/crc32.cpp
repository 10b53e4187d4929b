#include "plugins/c_api/crc32.hpp"

#include <array>

namespace wpk
{
namespace
{

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
            rest = rest >> 1 ^ (rest & 1 ? 0xEDB88320 : 0);
        }
        tables[0][byte] = rest;
    }
    for (std::size_t k = 1; k < tables.size(); ++k)
    {
        for (std::size_t byte = 0; byte < 256; ++byte)
        {
            const std::uint32_t rest = tables[k - 1][byte];
            tables[k][byte] = rest >> 8 ^ tables[0][rest & 0xFF];
        }
    }
    return tables;
}

constexpr Tables tables = make_tables();

} // namespace

void Crc32::add(const std::byte* data, std::size_t size) noexcept
{
    std::uint32_t state = state_;
    const auto at = [&](std::size_t i)
    {
        return std::to_integer<std::uint32_t>(data[i]);
    };
    for (; size >= 8; data += 8, size -= 8)
    {
        const std::uint32_t first = state ^ (at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24);
        state = tables[7][first & 0xFF] ^ tables[6][first >> 8 & 0xFF] ^ tables[5][first >> 16 & 0xFF]
                ^ tables[4][first >> 24] ^ tables[3][at(4)] ^ tables[2][at(5)] ^ tables[1][at(6)] ^ tables[0][at(7)];
    }
    for (; size > 0; ++data, --size)
    {
        state = state >> 8 ^ tables[0][(state ^ at(0)) & 0xFF];
    }
    state_ = state;
}

} // namespace wpk
