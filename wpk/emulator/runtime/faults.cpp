// Faults of the hardware (illegal address, division by zero) become errors that name block and thread.
#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>

#include "early_launch.h"

namespace wpk::emulator
{

namespace
{

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous[3];
thread_local int faultSignal;
thread_local void* faultAddress;
thread_local unsigned long faultStack; // the stack pointer

// Entered with the worker's emergency stack, after the signal handler has returned.
[[noreturn]] void report()
{
    const Worker& self = *worker;
    const unsigned long address = reinterpret_cast<unsigned long>(faultAddress);
    const size_t fiber = static_cast<size_t>(currentFiber() - self.fibers.data());
    const unsigned long lowest =
        reinterpret_cast<unsigned long>(self.stacks) + fiber * Worker::kStackBytes + Worker::kPageBytes;
    if (faultSignal == SIGFPE)
        fail("integer division by zero");
    if (faultStack < lowest)
    {
        fail("a thread's local variables need more than %zu bytes", Worker::kStackBytes - Worker::kPageBytes);
    }
    if (isClosed(faultAddress))
        fail("memory of the kernels in front is touched before waitForPrevious");
    for (const RunningBlock& block : self.blocks)
    {
        const unsigned long end = reinterpret_cast<unsigned long>(block.sharedEnd);
        if (address >= end && address < end + (1u << 20))
        {
            fail("illegal address: at least %lu bytes behind the %u bytes of dynamic shared memory", address - end,
                block.sharedBytes);
        }
    }
    fail("illegal address %p: outside every buffer and the shared memory", faultAddress);
}

void onFault(int signal, siginfo_t* info, void* context)
{
    if (worker == nullptr || wpk_emulator_thread == nullptr)
    { // not in a kernel: not ours
        for (int i = 0; i < 3; ++i)
        {
            if (kSignals[i] == signal)
                sigaction(signal, &previous[i], nullptr);
        }
        return;
    }
    faultSignal = signal;
    faultAddress = info->si_addr;
    auto* const registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    faultStack = static_cast<unsigned long>(registers[REG_RSP]);
    char* const top = worker->emergencyStack + sizeof worker->emergencyStack;
    registers[REG_RSP] = static_cast<greg_t>((reinterpret_cast<unsigned long>(top) & ~63ul) - 8);
    registers[REG_RIP] = reinterpret_cast<greg_t>(report);
}

} // namespace

void installFaultHandlers()
{
    struct sigaction action{};
    action.sa_sigaction = onFault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 3; ++i)
        sigaction(kSignals[i], &action, &previous[i]);
}

void removeFaultHandlers()
{
    for (int i = 0; i < 3; ++i)
        sigaction(kSignals[i], &previous[i], nullptr);
}

void useSignalStack(Worker& self)
{
    stack_t stack{};
    stack.ss_sp = self.signalStack;
    stack.ss_size = sizeof self.signalStack;
    sigaltstack(&stack, nullptr);
}

} // namespace wpk::emulator
