// What went wrong, for a caller who cannot see the code.
#pragma once

#include <stdexcept>
#include <string>

namespace wpk
{

enum class Code
{
    invalid_argument, // the caller gave something that cannot be
    damaged,          // a file or a spec does not add up
    unsupported,      // right, but not executed here
    no_driver,        // no CUDA driver, or one that is too old
    driver,           // the CUDA driver refused
    out_of_memory,
    io,
};

// The text says what, where, what was seen and what is allowed, and ends with "; fix: ...".
class Error : public std::runtime_error
{
public:
    Error(Code code, const std::string& text) : std::runtime_error(text), code_(code) {}

    Code code() const noexcept
    {
        return code_;
    }

private:
    Code code_;
};

} // namespace wpk
