#include "plugins/tests/tensorrt_double/expectations.hpp"

#include <cstdio>
#include <cstdlib>

#include "plugins/tensorrt/last_error.hpp"
#include "plugins/tests/allocations.hpp"

namespace wpk_test
{

void require(bool holds, const char* what)
{
    if (!holds)
    {
        const Undisturbed none;
        std::fprintf(stderr, "WRONG: %s; %s\n", what, wpk_last_error());
        std::exit(1);
    }
}

void accept(bool holds)
{
    if (!holds)
    {
        throw Refused();
    }
}

} // namespace wpk_test
