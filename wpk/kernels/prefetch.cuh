// Memory that is asked for before it is read.
#pragma once

#include <wpk/kernels/portable.cuh>

namespace wpk
{

constexpr int kSectorBytes = 32; // the least that memory moves

#if !WPK_ON_GPU
namespace detail
{
// A load, which the emulator checks like any other.
WPK_DEVICE void loadByte(const void* pointer)
{
#if WPK_EMULATOR_CHECKS
    if (pointer == nullptr)
        return;
    wpk_emulator_access(pointer, 1, 0);
    (void)*static_cast<const volatile unsigned char*>(pointer);
#else
    (void)pointer;
#endif
}
} // namespace detail
#endif

// Asks for the sector of an element that no kernel writes; for nothing where the pointer is null. Brings it to L2.
template <class T>
WPK_DEVICE void prefetchConstant(const T* pointer)
{
#if WPK_ON_GPU
    asm volatile("{\n"
                 ".reg .pred exists;\n"
                 "setp.ne.s64 exists, %0, 0;\n"
                 "@exists prefetch.global.L2 [%0];\n"
                 "}" ::"l"(pointer));
#else
    detail::loadByte(pointer);
#endif
}

// Asks for the sector of an element, and brings it to L1; for nothing where the pointer is null. The word is for
// awaitTouched: ptxas drops a load that nobody waits for, and prefetches to L1 are a hint.
template <class T>
WPK_DEVICE uint32 touch(const T* pointer)
{
    uint32 word = 0;
#if WPK_ON_GPU
#define WPK_TOUCH(TYPE)                                   \
    asm volatile("{\n"                                    \
                 ".reg .pred exists;\n"                   \
                 "setp.ne.s64 exists, %1, 0;\n"           \
                 "@exists ld.global." TYPE " %0, [%1];\n" \
                 "}"                                      \
        : "+r"(word)                                      \
        : "l"(pointer))
    if constexpr (sizeof(T) == 1)
    {
        WPK_TOUCH("u8");
    }
    else if constexpr (sizeof(T) == 2)
    {
        WPK_TOUCH("u16");
    }
    else
    {
        WPK_TOUCH("u32");
    }
#undef WPK_TOUCH
#else
    detail::loadByte(pointer);
#endif
    return word;
}

// Waits for what was touched; the words may be mixed in any way. Sleeps no time, once in 2^32.
WPK_DEVICE void awaitTouched(uint32 words)
{
#if WPK_ON_GPU
    asm volatile("{\n"
                 ".reg .pred unlikely;\n"
                 "setp.eq.u32 unlikely, %0, 0x7b1d5a3c;\n"
                 "@unlikely nanosleep.u32 0;\n"
                 "}" ::"r"(words));
#else
    (void)words;
#endif
}

} // namespace wpk
