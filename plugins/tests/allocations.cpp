#include "plugins/tests/allocations.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

namespace wpk_test
{

std::atomic<long> allocations_left = -1;

} // namespace wpk_test

void* operator new(std::size_t size)
{
    long left = wpk_test::allocations_left;
    while (left > 0 && !wpk_test::allocations_left.compare_exchange_weak(left, left - 1))
    {
    }
    if (left == 0)
    {
        throw std::bad_alloc();
    }
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
