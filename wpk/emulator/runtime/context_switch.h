// Switches between stacks on one operating system thread. x86-64, System V calling convention.
#pragma once

#if !defined(__x86_64__) || !defined(__linux__)
#error "the emulator's context switch exists for x86-64 Linux only"
#endif

// Saves the current stack pointer to *save and continues on `load`, whose top was left by an earlier
// switch or by prepareStack. Callee-saved registers survive; signal masks are not touched.
extern "C" void wpk_emulator_switch(void** save, void* load);

// Where a new stack begins: calls wpk_emulator_fiber_main, which never returns.
extern "C" void wpk_emulator_fiber_entry();

namespace wpk::emulator
{

// Makes a stack that ends at `top` continue at wpk_emulator_fiber_entry; returns what to load.
inline void* prepareStack(char* top)
{
    constexpr int kSavedRegisters = 6;
    void** stack = reinterpret_cast<void**>(reinterpret_cast<unsigned long>(top) & ~63ul);
    *--stack = nullptr;
    *--stack = nullptr;
    for (int i = 0; i < kSavedRegisters; ++i)
        *--stack = nullptr;
    *--stack = reinterpret_cast<void*>(wpk_emulator_fiber_entry);
    return stack;
}

} // namespace wpk::emulator
