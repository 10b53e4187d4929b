#include "plugins/tensorrt/last_error.hpp"

#include <array>
#include <cstdio>
#include <exception>
#include <new>

namespace
{

// Not a std::string: what is told where no memory is left needs none.
thread_local std::array<char, 2048> last_error{};

} // namespace

const char* wpk_last_error() noexcept
{
    return last_error.data();
}

namespace wpk
{

void keep_error(const char* text) noexcept
{
    std::snprintf(last_error.data(), last_error.size(), "WpkKernel: %s", text);
}

const char* keep_exception() noexcept
{
    try
    {
        throw;
    }
    catch (const std::bad_alloc&)
    {
        keep_error("this machine's memory is used up; fix: end other programs");
    }
    catch (const std::exception& error)
    {
        keep_error(error.what());
    }
    catch (...)
    {
        keep_error("an exception of no known type; fix: report it, this is a bug in wpk");
    }
    return last_error.data();
}

} // namespace wpk
