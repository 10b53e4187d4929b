// A launch: blocks are handed to workers, one an operating system thread, until none is left.
#include <link.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <memory>
#include <mutex>

#include "state.h"

namespace wpk::emulator
{

namespace
{

constexpr uint32 kMaximumThreads = 1024;

std::mutex launchMutex;
std::vector<std::unique_ptr<Worker>> workers;

struct Module
{
    unsigned long address; // of a function in it
    size_t number = 0, bytes = 0;
};

// Finds the module that holds an address, and its thread-local storage.
int matchModule(struct dl_phdr_info* info, size_t, void* context)
{
    auto& wanted = *static_cast<Module*>(context);
    size_t bytes = 0;
    bool here = false;
    for (int i = 0; i < info->dlpi_phnum; ++i)
    {
        const auto& header = info->dlpi_phdr[i];
        const unsigned long start = info->dlpi_addr + header.p_vaddr;
        if (header.p_type == PT_TLS)
            bytes = header.p_memsz;
        if (header.p_type == PT_LOAD && wanted.address >= start && wanted.address < start + header.p_memsz)
            here = true;
    }
    if (!here)
        return 0;
    wanted.number = info->dlpi_tls_modid;
    wanted.bytes = bytes;
    return 1;
}

struct Job
{
    Worker* worker;
    Launch* launch;
};

void* runJob(void* context)
{
    const Job& job = *static_cast<Job*>(context);
    worker = job.worker;
    stack_t before{};
    sigaltstack(nullptr, &before);
    useSignalStack(*job.worker);
    prepareWorker(*job.worker, *job.launch);
    runBlocks(*job.worker);
    worker = nullptr;
    sigaltstack(&before, nullptr);
    return nullptr;
}

void findStaticShared(Launch& launch)
{
    Module module{reinterpret_cast<unsigned long>(launch.kernel)};
    dl_iterate_phdr(matchModule, &module);
    launch.staticModule = module.number;
    launch.staticBytes = module.bytes;
}

// Executes the launch on the calling thread and on `count` - 1 others.
void runWorkers(Launch& launch, uint32 count)
{
    while (workers.size() < count)
        workers.push_back(std::make_unique<Worker>());
    std::vector<Job> jobs;
    for (uint32 i = 0; i < count; ++i)
    {
        workers[i]->statistics = Statistics();
        jobs.push_back({workers[i].get(), &launch});
    }
    installFaultHandlers();
    std::vector<pthread_t> started;
    for (uint32 i = 1; i < count; ++i)
    {
        pthread_t handle;
        if (pthread_create(&handle, nullptr, runJob, &jobs[i]) == 0)
            started.push_back(handle); // with fewer threads the others do the work
    }
    runJob(&jobs[0]);
    for (pthread_t handle : started)
        pthread_join(handle, nullptr);
    removeFaultHandlers();
}

Statistics sumStatistics(uint32 count)
{
    Statistics sum;
    for (uint32 i = 0; i < count; ++i)
    {
        const Statistics& part = workers[i]->statistics;
        sum.collectives += part.collectives;
        sum.uncounted += part.uncounted;
        for (uint32 kind = 0; kind < kAccessKinds; ++kind)
        {
            sum.phases[kind] += part.phases[kind];
            sum.conflicts[kind] += part.conflicts[kind];
        }
    }
    return sum;
}

} // namespace

} // namespace wpk::emulator

using namespace wpk::emulator;

// Runs one kernel over its grid on `threads` operating system threads; launches wait for one another.
// `arguments` are pointers to the values, as cuLaunchKernel takes them. Returns 0, or 1 with `message` set.
WPK_API int wpk_emulator_launch(void (*kernel)(void**), void** arguments, const uint32_t* grid, const uint32_t* block,
    uint32_t shared_bytes, uint32_t threads, uint32_t modes, uint64_t seed, Statistics* statistics, char* message,
    size_t message_bytes)
{
    const std::lock_guard<std::mutex> lock(launchMutex);
    Launch launch{};
    launch.kernel = kernel;
    launch.arguments = arguments;
    launch.grid = {grid[0], grid[1], grid[2]};
    launch.block = {block[0], block[1], block[2]};
    launch.sharedBytes = shared_bytes;
    launch.modes = modes;
    launch.seed = seed;
    launch.blocks = static_cast<wpk::uint64>(grid[0]) * grid[1] * grid[2];
    launch.message = message;
    launch.messageBytes = message_bytes;
    const wpk::uint64 perBlock = static_cast<wpk::uint64>(block[0]) * block[1] * block[2];
    if (threads == 0 || launch.blocks == 0 || perBlock == 0 || perBlock > kMaximumThreads
        || shared_bytes > kMaximumSharedBytes)
    {
        snprintf(message, message_bytes,
            "%llu blocks of %llu threads and %u bytes of shared memory: at most %u threads and %zu bytes, at least 1",
            launch.blocks, perBlock, shared_bytes, kMaximumThreads, kMaximumSharedBytes);
        return 1;
    }
    findStaticShared(launch);
    if (threads > launch.blocks)
        threads = static_cast<uint32_t>(launch.blocks);
    runWorkers(launch, threads);
    *statistics = sumStatistics(threads);
    return launch.failed ? 1 : 0;
}
