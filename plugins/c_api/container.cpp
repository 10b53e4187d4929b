#include "plugins/c_api/container.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugins/c_api/crc32.hpp"
#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

// PKWARE's APPNOTE.TXT, sections 4.3 and 4.5.3; every plan ends with its directory, there is no comment.
constexpr std::uint64_t local_bytes = 30, entry_bytes = 46, end_bytes = 22, wide_end_bytes = 56, locator_bytes = 20;
constexpr std::uint32_t local_mark = 0x04034B50, entry_mark = 0x02014B50, end_mark = 0x06054B50;
constexpr std::uint32_t wide_end_mark = 0x06064B50, locator_mark = 0x07064B50;
constexpr std::uint32_t full = 0xFFFFFFFF;
constexpr std::uint64_t most_members = 20'000, most_directory_bytes = 8 << 20, most_name_bytes = 128;

std::uint64_t number(const std::byte* data, std::size_t size)
{
    std::uint64_t result = 0;
    for (std::size_t i = size; i > 0; --i)
    {
        result = result << 8 | std::to_integer<std::uint64_t>(data[i - 1]);
    }
    return result;
}

std::uint32_t u16(const std::byte* data)
{
    return static_cast<std::uint32_t>(number(data, 2));
}

std::uint32_t u32(const std::byte* data)
{
    return static_cast<std::uint32_t>(number(data, 4));
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

void Container::read_directory()
{
    if (bytes_ < end_bytes)
    {
        damaged("has " + std::to_string(bytes_) + " bytes, fewer than any plan");
    }
    std::byte end[end_bytes];
    read_at(bytes_ - end_bytes, end, sizeof end);
    if (u32(end) != end_mark)
    {
        damaged("is no plan, or is cut off: it does not end as a zip");
    }
    std::uint64_t count = u16(end + 10), size = u32(end + 12), begin = u32(end + 16), behind = bytes_ - end_bytes;
    if (size == full || begin == full)
    {
        std::byte wide[wide_end_bytes + locator_bytes];
        if (behind < sizeof wide)
        {
            damaged("is no plan, or is cut off: its directory has no place");
        }
        behind -= sizeof wide;
        read_at(behind, wide, sizeof wide);
        if (u32(wide) != wide_end_mark || u32(wide + wide_end_bytes) != locator_mark)
        {
            damaged("is no plan, or is cut off: its directory has no place");
        }
        count = number(wide + 32, 8);
        size = number(wide + 40, 8);
        begin = number(wide + 48, 8);
    }
    if (count > most_members || size > most_directory_bytes || begin > behind || behind - begin != size)
    {
        damaged("has a directory that does not add up: " + std::to_string(count) + " members, " + std::to_string(size)
                + " bytes at " + std::to_string(begin));
    }
    read_entries(begin, behind, count);
}

void Container::read_entries(std::uint64_t begin, std::uint64_t end, std::uint64_t count)
{
    std::vector<std::byte> entries(end - begin);
    read_at(begin, entries.data(), entries.size());
    std::size_t at = 0;
    for (std::uint64_t entry = 0; entry < count; ++entry)
    {
        const std::byte* data = entries.data() + at;
        const std::size_t left = entries.size() - at;
        const std::string which = "entry " + std::to_string(entry) + " of its directory";
        if (left < entry_bytes || u32(data) != entry_mark)
        {
            damaged("does not add up at " + which);
        }
        const std::size_t name_bytes = u16(data + 28), extra_bytes = u16(data + 30), comment_bytes = u16(data + 32);
        if (left - entry_bytes < name_bytes + extra_bytes + comment_bytes || name_bytes > most_name_bytes)
        {
            damaged("does not add up at " + which);
        }
        const std::string name(reinterpret_cast<const char*>(data + entry_bytes), name_bytes);
        std::uint64_t sizes[3] = {u32(data + 24), u32(data + 20), u32(data + 42)}; // whole, stored, place
        const std::byte* extra = data + entry_bytes + name_bytes;
        std::size_t used = 4;
        for (std::uint64_t& size : sizes)
        {
            if (size != full)
            {
                continue;
            }
            if (extra_bytes < used + 8 || u16(extra) != 1)
            {
                damaged("does not add up at " + which);
            }
            size = number(extra + used, 8);
            used += 8;
        }
        if ((u16(data + 8) & 1) != 0 || u16(data + 10) != 0 || sizes[0] != sizes[1])
        {
            damaged("has a compressed or encrypted member at " + which + "; plans are stored");
        }
        std::byte local[local_bytes];
        if (sizes[2] > begin || begin - sizes[2] < local_bytes)
        {
            damaged("does not add up at " + which);
        }
        read_at(sizes[2], local, sizeof local);
        const std::uint64_t head = local_bytes + u16(local + 26) + u16(local + 28), room = begin - sizes[2];
        if (u32(local) != local_mark || u16(local + 26) != name_bytes || head > room || sizes[0] > room - head)
        {
            damaged("does not add up at " + which);
        }
        if (!members_.emplace(name, Member{sizes[2] + head, sizes[0], u32(data + 16)}).second)
        {
            damaged("has a member twice at " + which);
        }
        at += entry_bytes + name_bytes + extra_bytes + comment_bytes;
    }
    if (at != entries.size())
    {
        damaged("has something behind its directory");
    }
}

void Container::damaged(const std::string& what) const
{
    throw Error(
        Code::damaged, "'" + path_ + "' " + what + "; fix: copy the plan again, or write it again: wpk optimize");
}

} // namespace wpk
