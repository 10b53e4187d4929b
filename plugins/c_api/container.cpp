#include "plugins/c_api/container.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/core/crc32.hpp"
#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

// PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3; every plan ends with its directory, there is no comment.
constexpr std::uint64_t local_bytes = 30, entry_bytes = 46, end_bytes = 22, wide_end_bytes = 76;
constexpr std::uint32_t end_mark = 0x06054B50, wide_end_mark = 0x06064B50;
constexpr std::uint64_t most_members = 20'000, most_directory_bytes = 8 << 20, most_name_bytes = 512;

std::uint64_t number(const std::vector<std::byte>& data, std::size_t at, std::size_t size)
{
    std::uint64_t result = 0;
    for (std::size_t i = size; i > 0; --i)
    {
        result = result << 8 | std::to_integer<std::uint64_t>(data[at + i - 1]);
    }
    return result;
}

} // namespace

Container::Container(const std::string& path) : path_(path)
{
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (file_ < 0 || ::fstat(file_, &about) != 0 || !S_ISREG(about.st_mode))
    {
        const std::string why = file_ < 0 ? std::strerror(errno) : "it is no file";
        if (file_ >= 0)
        {
            ::close(file_);
        }
        throw Error(Code::io, "'" + path + "' cannot be read: " + why + "; fix: give the path of a plan");
    }
    bytes_ = static_cast<std::uint64_t>(about.st_size);
    try
    {
        read_directory();
    }
    catch (...)
    {
        ::close(file_);
        throw;
    }
}

Container::~Container()
{
    ::close(file_);
}

const Container::Member& Container::find(const std::string& name) const
{
    const auto found = members_.find(name);
    if (found == members_.end())
    {
        damaged("has no member '" + name + "'");
    }
    return found->second;
}

std::vector<std::byte> Container::read(const std::string& name, std::uint64_t limit) const
{
    const Member& member = find(name);
    if (member.bytes > limit)
    {
        damaged("has a member '" + name + "' of " + std::to_string(member.bytes) + " bytes, allowed are "
                + std::to_string(limit));
    }
    std::vector<std::byte> data(member.bytes);
    read_pieces(name, data.data(), data.size(), [](std::uint64_t, std::size_t) {});
    return data;
}

void Container::read_pieces(const std::string& name, std::byte* buffer, std::size_t size, const Take& take) const
{
    const Member& member = find(name);
    Crc32 crc;
    for (std::uint64_t place = 0; place < member.bytes; place += size)
    {
        const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(size, member.bytes - place));
        read_at(member.begin + place, buffer, piece);
        crc.add(buffer, piece);
        take(place, piece);
    }
    if (crc.value() != member.crc)
    {
        damaged("has other bytes in '" + name + "' than were written: their CRC differs");
    }
}

void Container::read_at(std::uint64_t place, std::byte* into, std::size_t size) const
{
    while (size > 0)
    {
        const ssize_t got = ::pread(file_, into, size, static_cast<off_t>(place));
        if (got < 0 && errno == EINTR)
        {
            continue;
        }
        if (got < 0)
        {
            throw Error(Code::io,
                "'" + path_ + "' cannot be read: " + std::strerror(errno) + "; fix: check where the file lies");
        }
        if (got == 0)
        {
            damaged("became shorter while it was read");
        }
        into += got;
        place += static_cast<std::uint64_t>(got);
        size -= static_cast<std::size_t>(got);
    }
}

std::vector<std::byte> Container::bytes_at(std::uint64_t place, std::uint64_t size) const
{
    std::vector<std::byte> data(size);
    read_at(place, data.data(), data.size());
    return data;
}

void Container::read_directory()
{
    if (bytes_ < end_bytes)
    {
        damaged("has " + std::to_string(bytes_) + " bytes, fewer than any plan");
    }
    const std::vector<std::byte> end = bytes_at(bytes_ - end_bytes, end_bytes);
    if (number(end, 0, 4) != end_mark)
    {
        damaged("is no plan, or is cut off: it does not end as a zip");
    }
    std::uint64_t count = number(end, 10, 2), size = number(end, 12, 4), begin = number(end, 16, 4);
    std::uint64_t behind = bytes_ - end_bytes;
    if (behind >= wide_end_bytes)
    {
        const std::vector<std::byte> wide = bytes_at(behind - wide_end_bytes, wide_end_bytes);
        if (number(wide, 0, 4) == wide_end_mark)
        {
            behind -= wide_end_bytes;
            count = number(wide, 32, 8);
            size = number(wide, 40, 8);
            begin = number(wide, 48, 8);
        }
    }
    if (count > most_members || size > most_directory_bytes || begin > behind || behind - begin != size)
    {
        damaged("has a directory that does not add up: " + std::to_string(count) + " members, " + std::to_string(size)
                + " bytes at " + std::to_string(begin));
    }
    const std::vector<std::byte> data = bytes_at(begin, size);
    std::vector<Entry> entries;
    std::size_t at = 0;
    for (std::uint64_t number = 0; number < count; ++number)
    {
        entries.push_back(read_entry(data, at));
    }
    take_members(entries, begin);
    if (directory(entries, begin) != bytes_at(begin, bytes_ - begin))
    {
        damaged("holds something behind its last member that no plan has there");
    }
}

Entry Container::read_entry(const std::vector<std::byte>& data, std::size_t& at) const
{
    const std::size_t left = data.size() - at;
    const std::uint64_t name_bytes = left < entry_bytes ? 0 : number(data, at + 28, 2);
    const std::uint64_t extra_bytes = left < entry_bytes ? 0 : number(data, at + 30, 2);
    if (left < entry_bytes || name_bytes > most_name_bytes || left - entry_bytes < name_bytes + extra_bytes)
    {
        damaged("has a directory that ends within a member");
    }
    const std::string name(reinterpret_cast<const char*>(data.data()) + at + entry_bytes, name_bytes);
    if (!is_member_name(name))
    {
        damaged("has a member that no plan has");
    }
    std::uint64_t stored = number(data, at + 20, 4), size = number(data, at + 24, 4), begin = number(data, at + 42, 4);
    std::size_t wide = at + entry_bytes + name_bytes + 4;
    const std::size_t end = at + entry_bytes + name_bytes + extra_bytes;
    for (std::uint64_t* each : {&size, &stored, &begin}) // in the order of the format
    {
        if (*each == full_field && wide + 8 <= end)
        {
            *each = number(data, wide, 8);
            wide += 8;
        }
    }
    if (number(data, at + 10, 2) != 0 || size != stored)
    {
        damaged("has a compressed member '" + name + "'; plans are stored");
    }
    const auto crc = static_cast<std::uint32_t>(number(data, at + 16, 4));
    at = end;
    return {name, begin, size, crc, false};
}

void Container::take_members(std::vector<Entry>& entries, std::uint64_t end)
{
    std::uint64_t position = 0;
    for (Entry& entry : entries)
    {
        if (entry.begin != position || end - position < local_bytes)
        {
            damaged("holds something in front of member '" + entry.name + "' that no plan has there");
        }
        entry.is_large = number(bytes_at(position, local_bytes), 4, 1) == large_version;
        const std::vector<std::byte> header = local_header(entry);
        if (end - position < header.size() || bytes_at(position, header.size()) != header)
        {
            damaged("holds something in front of member '" + entry.name + "' that no plan has there");
        }
        position += header.size();
        if (end - position < entry.bytes)
        {
            damaged("is cut off within member '" + entry.name + "'");
        }
        if (!members_.emplace(entry.name, Member{position, entry.bytes, entry.crc}).second)
        {
            damaged("has two members '" + entry.name + "'");
        }
        position += entry.bytes;
    }
    if (position != end)
    {
        damaged("holds something behind its last member that no plan has there");
    }
    for (const char* needed : {"plan.json", "plan.spec", "weights.safetensors", "plan.sha256"})
    {
        find(needed);
    }
}

void Container::damaged(const std::string& what) const
{
    throw Error(
        Code::damaged, "'" + path_ + "' " + what + "; fix: copy the plan again, or write it again: wpk optimize");
}

} // namespace wpk
