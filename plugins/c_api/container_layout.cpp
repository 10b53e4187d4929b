#include "plugins/c_api/container_layout.hpp"

#include <algorithm>

namespace wpk
{
namespace
{

// PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3, and what Python's zipfile makes of them.
constexpr std::uint64_t limit = (std::uint64_t{1} << 31U) - 1;
constexpr std::uint64_t plain_version = 20, unix_system = 3, day = 0x21, unix_file = 0644U << 16U;

class Bytes
{
public:
    // The number's lowest bytes, little-endian.
    Bytes& number(std::uint64_t value, int size)
    {
        for (int i = 0; i < size; ++i, value >>= 8U)
        {
            bytes_.push_back(static_cast<std::byte>(value & 0xFFU));
        }
        return *this;
    }

    Bytes& zeros(int count)
    {
        return number(0, count);
    }

    Bytes& text(const std::string& text)
    {
        std::transform(text.begin(), text.end(), std::back_inserter(bytes_),
            [](char letter) { return static_cast<std::byte>(letter); });
        return *this;
    }

    std::vector<std::byte> all() const
    {
        return bytes_;
    }

    std::size_t size() const
    {
        return bytes_.size();
    }

private:
    std::vector<std::byte> bytes_;
};

void add_entry(Bytes& out, const Entry& entry)
{
    const bool is_wide = entry.bytes > limit, is_far = entry.begin > limit;
    const std::uint64_t version = entry.is_large || is_wide || is_far ? large_version : plain_version;
    const std::uint64_t size = is_wide ? full_field : entry.bytes, wide = (is_wide ? 16U : 0U) + (is_far ? 8U : 0U);
    out.text("PK\x01\x02").number(version, 1).number(unix_system, 1).number(version, 1).zeros(1);
    out.zeros(2).zeros(2).zeros(2).number(day, 2).number(entry.crc, 4).number(size, 4).number(size, 4);
    out.number(entry.name.size(), 2).number(wide == 0 ? 0 : 4 + wide, 2).zeros(2).zeros(2).zeros(2);
    out.number(unix_file, 4).number(is_far ? full_field : entry.begin, 4).text(entry.name);
    if (wide != 0)
    {
        out.number(1, 2).number(wide, 2);
    }
    if (is_wide)
    {
        out.number(entry.bytes, 8).number(entry.bytes, 8);
    }
    if (is_far)
    {
        out.number(entry.begin, 8);
    }
}

constexpr std::size_t digits = 64;

bool is_digest(const std::string& text) noexcept
{
    return text.size() == digits
           && std::all_of(text.begin(), text.end(),
               [](char letter) { return (letter >= '0' && letter <= '9') || (letter >= 'a' && letter <= 'f'); });
}

// A member's name in the plan that it belongs to, which may be that of a body within a body.
std::string name_in_plan(const std::string& name) noexcept
{
    constexpr int most_depth = 4;
    const std::string folder = "bodies/";
    const std::size_t size = folder.size() + digits + 1;
    std::size_t at = 0;
    for (int depth = 0; depth < most_depth && name.size() > at + size && name.compare(at, folder.size(), folder) == 0
                        && is_digest(name.substr(at + folder.size(), digits)) && name[at + size - 1] == '/';
        ++depth)
    {
        at += size;
    }
    return name.substr(at);
}

} // namespace

bool is_member_name(const std::string& whole) noexcept
{
    const std::string name = name_in_plan(whole);
    constexpr const char* single[] = {"plan.json", "plan.spec", "plan.sha256", "weights.safetensors"};
    if (std::any_of(std::begin(single), std::end(single), [&](const char* each) { return name == each; }))
    {
        return true;
    }
    const std::size_t slash = name.find('/'), dot = name.find('.');
    if (slash == std::string::npos || dot == std::string::npos || dot < slash
        || !is_digest(name.substr(slash + 1, dot - slash - 1)))
    {
        return false;
    }
    const std::string folder = name.substr(0, slash), suffix = name.substr(dot);
    return (folder == "kernels" && (suffix == ".cubin" || suffix == ".cu"))
           || (folder == "models" && suffix == ".onnx");
}

std::vector<std::byte> local_header(const Entry& entry)
{
    const std::uint64_t size = entry.is_large ? full_field : entry.bytes;
    Bytes out;
    out.text("PK\x03\x04").number(entry.is_large ? large_version : plain_version, 1).zeros(1);
    out.zeros(2).zeros(2).zeros(2).number(day, 2).number(entry.crc, 4).number(size, 4).number(size, 4);
    out.number(entry.name.size(), 2).number(entry.is_large ? 20 : 0, 2).text(entry.name);
    if (entry.is_large)
    {
        out.number(1, 2).number(16, 2).number(entry.bytes, 8).number(entry.bytes, 8);
    }
    return out.all();
}

std::vector<std::byte> directory(const std::vector<Entry>& entries, std::uint64_t position)
{
    Bytes out;
    for (const Entry& entry : entries)
    {
        add_entry(out, entry);
    }
    const std::uint64_t size = out.size(), count = entries.size();
    if (position > limit || size > limit)
    {
        out.text("PK\x06\x06").number(44, 8).number(large_version, 2).number(large_version, 2).zeros(4).zeros(4);
        out.number(count, 8).number(count, 8).number(size, 8).number(position, 8);
        out.text("PK\x06\x07").zeros(4).number(position + size, 8).number(1, 4);
    }
    out.text("PK\x05\x06").zeros(2).zeros(2).number(count, 2).number(count, 2);
    out.number(std::min(size, full_field), 4).number(std::min(position, full_field), 4).zeros(2);
    return out.all();
}

} // namespace wpk
