// The CRC-32 of zip files and specs, of data that comes in pieces.
#pragma once

#include <cstddef>
#include <cstdint>

namespace wpk
{

class Crc32
{
public:
    void add(const std::byte* data, std::size_t size) noexcept;

    std::uint32_t value() const noexcept
    {
        return ~state_;
    }

private:
    std::uint32_t state_ = 0xFFFFFFFF;
};

} // namespace wpk
