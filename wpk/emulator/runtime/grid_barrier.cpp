// Blocks of a grid that wait for each other (grid_barrier.cuh): they count in global memory.
#include "state.h"

using namespace wpk::emulator;

WPK_API void wpk_emulator_grid_arrive(int* counter)
{
    wpk_emulator_fence(); // an arrival releases what barriers have put in front of it
    wpk_emulator_count();
    __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
    wakeSleepers();
}

WPK_API void wpk_emulator_grid_wait(const int* counter, int arrivals)
{
    while (__atomic_load_n(counter, __ATOMIC_SEQ_CST) - arrivals < 0)
        sleepFor(Collective::gridBarrier, counter, 0);
    yieldSometimes();
}

WPK_API void wpk_emulator_grid_publish(unsigned long long* word, unsigned long long value)
{
    __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
    wakeSleepers();
    yieldSometimes();
}

WPK_API uint32_t wpk_emulator_grid_await(const unsigned long long* word, uint32_t tag)
{
    unsigned long long seen;
    while (seen = __atomic_load_n(word, __ATOMIC_SEQ_CST), static_cast<uint32_t>(seen >> 32) != tag)
        sleepFor(Collective::gridBarrier, word, 0);
    yieldSometimes();
    return static_cast<uint32_t>(seen);
}
