#include "plugins/core/byte_reader.hpp"

#include <cstring>

#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

bool is_utf8(const std::string& text) noexcept
{
    std::size_t at = 0;
    while (at < text.size())
    {
        const auto lead = static_cast<unsigned char>(text[at]);
        const std::size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
        if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || length > text.size() - at)
        {
            return false;
        }
        unsigned long point = length == 1 ? lead : lead & (0x7fU >> length);
        for (std::size_t i = 1; i < length; ++i)
        {
            const auto next = static_cast<unsigned char>(text[at + i]);
            if ((next & 0xc0U) != 0x80)
            {
                return false;
            }
            point = point << 6U | (next & 0x3fU);
        }
        const bool is_long = (length == 3 && point < 0x800) || (length == 4 && point < 0x10000);
        if (is_long || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
        {
            return false;
        }
        at += length;
    }
    return true;
}

} // namespace

void spec_is_damaged(const std::string& what)
{
    throw Error(Code::damaged, "the spec " + what + "; fix: write it again with wpk, or copy the file again");
}

std::uint32_t index_below(std::uint32_t index, std::size_t count, const char* what)
{
    if (index >= count)
    {
        spec_is_damaged(std::string("names ") + what + " " + std::to_string(index) + " of " + std::to_string(count));
    }
    return index;
}

const std::byte* ByteReader::take(std::size_t size, const char* field)
{
    if (size > left())
    {
        spec_is_damaged(std::string("ends within ") + field + ": " + std::to_string(size) + " bytes are asked for, "
                        + std::to_string(left()) + " are left");
    }
    const std::byte* taken = at_;
    at_ += size;
    return taken;
}

template <typename Number>
Number ByteReader::number(const char* field)
{
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "specs are little-endian");
    Number value;
    std::memcpy(&value, take(sizeof value, field), sizeof value);
    return value;
}

std::uint8_t ByteReader::u8(const char* field)
{
    return number<std::uint8_t>(field);
}

std::uint16_t ByteReader::u16(const char* field)
{
    return number<std::uint16_t>(field);
}

std::uint32_t ByteReader::u32(const char* field)
{
    return number<std::uint32_t>(field);
}

std::uint64_t ByteReader::u64(const char* field)
{
    return number<std::uint64_t>(field);
}

std::int32_t ByteReader::i32(const char* field)
{
    return number<std::int32_t>(field);
}

std::int64_t ByteReader::i64(const char* field)
{
    return number<std::int64_t>(field);
}

double ByteReader::f64(const char* field)
{
    return number<double>(field);
}

bool ByteReader::flag(const char* field)
{
    const std::uint8_t value = u8(field);
    if (value > 1)
    {
        spec_is_damaged(std::string("has ") + std::to_string(value) + " as " + field + ", 0 and 1 are allowed");
    }
    return value == 1;
}

std::uint32_t ByteReader::counted(const char* field, std::size_t least, std::size_t most)
{
    const std::uint32_t count = u32(field);
    if (count > left() / least)
    {
        spec_is_damaged("counts " + std::to_string(count) + " of " + field + ", and has " + std::to_string(left())
                        + " bytes left for them");
    }
    if (count > most)
    {
        spec_is_damaged(
            "counts " + std::to_string(count) + " of " + field + ", at most " + std::to_string(most) + " are allowed");
    }
    return count;
}

std::vector<std::byte> ByteReader::bytes(const char* field)
{
    const std::uint32_t size = u32(field);
    const std::byte* data = take(size, field);
    return {data, data + size};
}

std::string ByteReader::text(const char* field)
{
    const std::uint32_t size = u32(field);
    const std::byte* data = take(size, field);
    std::string text(reinterpret_cast<const char*>(data), size);
    if (text.find('\0') != std::string::npos || !is_utf8(text))
    {
        spec_is_damaged(std::string("has no text as ") + field + ": it is no UTF-8 without NUL");
    }
    return text;
}

} // namespace wpk
