// Fields of a spec, one after the other, never beyond its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace wpk
{

class ByteReader
{
public:
    ByteReader(const std::byte* data, std::size_t size) : at_(data), end_(data + size) {}

    // All throw Error(damaged) where less is left; `field` names what is read, for the text.
    std::uint8_t u8(const char* field);
    std::uint16_t u16(const char* field);
    std::uint32_t u32(const char* field);
    std::uint64_t u64(const char* field);
    std::int32_t i32(const char* field);
    std::int64_t i64(const char* field);
    double f64(const char* field);
    std::vector<std::byte> bytes(const char* field);
    std::string text(const char* field);
    bool flag(const char* field);

    // A sequence of at most `most` items that take at least `least` bytes each: a wrong count allocates nothing.
    template <typename Read>
    auto sequence(const char* field, std::size_t least, Read read, std::size_t most = SIZE_MAX)
    {
        std::vector<decltype(read())> items;
        const std::uint32_t count = counted(field, least, most);
        items.reserve(count);
        for (std::uint32_t i = 0; i < count; ++i)
        {
            items.push_back(read());
        }
        return items;
    }

    std::size_t left() const noexcept
    {
        return static_cast<std::size_t>(end_ - at_);
    }

private:
    template <typename Number>
    Number number(const char* field);
    std::uint32_t counted(const char* field, std::size_t least, std::size_t most);
    const std::byte* take(std::size_t size, const char* field);

    const std::byte *at_, *end_;
};

// Throws Error(damaged): "the spec ... <what>; fix: ...".
[[noreturn]] void spec_is_damaged(const std::string& what);

// An index that must be below a count; returns it.
std::uint32_t index_below(std::uint32_t index, std::size_t count, const char* what);

} // namespace wpk
