// Allocations of the program or library that this is linked into, which can be made to fail.
#pragma once

#include <atomic>

namespace wpk_test
{

extern std::atomic<long> allocations_left; // below 0: all succeed

// While there is one, allocations succeed: those of the double itself take no part in the failing.
class Undisturbed
{
public:
    Undisturbed() : left_(allocations_left)
    {
        allocations_left = -1;
    }
    Undisturbed(const Undisturbed&) = delete;
    Undisturbed& operator=(const Undisturbed&) = delete;
    ~Undisturbed()
    {
        allocations_left = left_;
    }

private:
    long left_;
};

} // namespace wpk_test
