// A constant that is asked for before it is read.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

constexpr int kSectorBytes = 32; // the least that memory moves

// Asks for the sector of an element; for nothing where the pointer is null. Brings it to L2: such a prefetch has no
// result, so nothing waits for it, and what it brings stays where the wait for kernels in front may drop what lies in
// L1. In the emulator it is a load, which is checked like any other.
template <class T>
WPK_DEVICE void prefetchConstant(const T* pointer)
{
#if WPK_ON_GPU
    asm volatile("{\n"
                 ".reg .pred exists;\n"
                 "setp.ne.s64 exists, %0, 0;\n"
                 "@exists prefetch.global.L2 [%0];\n"
                 "}" ::"l"(pointer));
#elif WPK_EMULATOR_CHECKS
    if (pointer == nullptr)
        return;
    wpk_emulator_access(pointer, 1, 0);
    (void)*reinterpret_cast<const volatile unsigned char*>(pointer);
#else
    (void)pointer;
#endif
}

} // namespace wpk
