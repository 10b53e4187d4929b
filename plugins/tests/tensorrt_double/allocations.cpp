#include "plugins/tests/tensorrt_double/allocations.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace wpk_test
{

long allocations_left = -1;

} // namespace wpk_test

void* operator new(std::size_t size)
{
    if (wpk_test::allocations_left == 0)
    {
        throw std::bad_alloc();
    }
    wpk_test::allocations_left -= wpk_test::allocations_left > 0;
    void* memory = std::malloc(size != 0 ? size : 1);
    if (memory == nullptr)
    {
        throw std::bad_alloc();
    }
    return memory;
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}
