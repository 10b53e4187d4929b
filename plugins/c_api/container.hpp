// The zip that a plan is, read without trust: stored members only, as wpk/plan/container.py writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "plugins/c_api/container_layout.hpp"

namespace wpk
{

class Container
{
public:
    struct Member
    {
        std::uint64_t begin, bytes; // within the file
        std::uint32_t crc;
    };

    // Open a file and read its directory. Throws Error(io), Error(damaged).
    explicit Container(const std::string& path);
    ~Container();
    Container(const Container&) = delete;
    Container& operator=(const Container&) = delete;

    // Throws Error(damaged) if there is none of this name.
    const Member& find(const std::string& name) const;

    // All bytes of a member of at most `limit` bytes; its CRC is checked. Throws Error(io), Error(damaged).
    std::vector<std::byte> read(const std::string& name, std::uint64_t limit) const;

    // Read a member into `buffer`, of `size` bytes, piece by piece; each is given away with its place in the member
    // and its size. The CRC is checked at the end. Throws Error(io), Error(damaged).
    using Take = std::function<void(std::uint64_t place, std::size_t size)>;
    void read_pieces(const std::string& name, std::byte* buffer, std::size_t size, const Take& take) const;

    const std::string& path() const noexcept
    {
        return path_;
    }

private:
    void read_at(std::uint64_t place, std::byte* into, std::size_t size) const;
    std::vector<std::byte> bytes_at(std::uint64_t place, std::uint64_t size) const;
    void read_directory();
    // The entry at a place of the directory; the place becomes that of the next one.
    Entry read_entry(const std::vector<std::byte>& data, std::size_t& at) const;
    void take_members(std::vector<Entry>& entries, std::uint64_t end);
    [[noreturn]] void damaged(const std::string& what) const;

    std::string path_;
    int file_ = -1;
    std::uint64_t bytes_ = 0;
    std::map<std::string, Member> members_;
};

} // namespace wpk
