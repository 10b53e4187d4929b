// What a kernel that is launched early may not do: touch, in a thread that has not waited for the kernels in front,
// the memory that these may touch (`awaited`), or end without having waited. One worker, in random order.
#pragma once

#include "state.h"

namespace wpk::emulator
{

// Whole pages of memory.
struct Pages
{
    void* address;
    size_t bytes;
};

void beginEarlyLaunch(const Pages* awaited, size_t count);
void endEarlyLaunch();
// No thread of the cluster has waited yet.
void beginEarlyCluster(const Worker& self);

// These do nothing where the launch is not early.
//
// Opens the awaited memory for the fiber that runs next, or closes it.
void openFor(const Fiber& next);
// Opens it for what the hardware does beside the threads.
void openForCopies();
// Behind a barrier all threads have waited if one has.
void shareWaits(const RunningBlock& block);
void checkWaited(const Fiber& fiber);
// Whether an address lies in memory that is closed to the current thread.
bool isClosed(const void* address);

} // namespace wpk::emulator
