// Arithmetic on sizes that a file or a caller decides.
#pragma once

#include <cstdint>
#include <string>

#include "plugins/core/error.hpp"

namespace wpk
{

// More than any GPU has; sums and products of what lies below are checked all the same.
constexpr std::int64_t most_bytes = std::int64_t{1} << 46;

[[noreturn]] inline void refuse_size(const std::string& what)
{
    throw Error(Code::invalid_argument, what + " is larger than any memory; fix: set smaller dimensions");
}

inline std::int64_t sum(std::int64_t a, std::int64_t b, const std::string& what)
{
    std::int64_t result = 0;
    if (__builtin_add_overflow(a, b, &result))
    {
        refuse_size(what);
    }
    return result;
}

inline std::int64_t product(std::int64_t a, std::int64_t b, const std::string& what)
{
    std::int64_t result = 0;
    if (__builtin_mul_overflow(a, b, &result))
    {
        refuse_size(what);
    }
    return result;
}

inline std::int64_t within_memory(std::int64_t bytes, const std::string& what)
{
    if (bytes < 0 || bytes > most_bytes)
    {
        throw Error(Code::invalid_argument, what + " has " + std::to_string(bytes) + " bytes, allowed are 0 to "
                                                + std::to_string(most_bytes) + "; fix: set smaller dimensions");
    }
    return bytes;
}

} // namespace wpk
