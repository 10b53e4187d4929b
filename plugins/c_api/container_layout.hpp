// Every byte of a plan's zip that is not a member's own, as wpk/plan/container_layout.py says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace wpk
{

// Of fields of 32 bits whose number stands in one of 64 bits elsewhere; of entries that have such fields.
constexpr std::uint64_t full_field = 0xFFFFFFFF, large_version = 45;

// An entry of the directory, in the order of the file.
struct Entry
{
    std::string name;
    std::uint64_t begin, bytes; // of the member's local header; of the member
    std::uint32_t crc;
    bool is_large; // whether its local header has sizes of 64 bits
};

// Names that members of plans have.
bool is_member_name(const std::string& whole) noexcept;

std::vector<std::byte> local_header(const Entry& entry);

// The directory, and what follows it, of members that end at `position`.
std::vector<std::byte> directory(const std::vector<Entry>& entries, std::uint64_t position);

} // namespace wpk
