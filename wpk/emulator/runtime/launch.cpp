// A launch: clusters of blocks are handed to workers, one an operating system thread, until none is left.
#include <link.h>
#include <pthread.h>
#include <signal.h>

#include <cstdio>
#include <memory>
#include <mutex>

#include "early_launch.h"

namespace wpk::emulator
{

namespace
{

constexpr uint32 kMaximumThreads = 1024;
constexpr uint64 kMaximumTogether = 4096; // more blocks than any GPU holds at once

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
    runClusters(*job.worker);
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

uint64 volume(const emulated::Index3& sizes)
{
    return static_cast<uint64>(sizes.x) * sizes.y * sizes.z;
}

// False, with the launch's message, when no GPU has such blocks.
bool checkBlocks(const Launch& launch)
{
    const uint64 blocks = volume(launch.grid), threads = volume(launch.block);
    if (blocks != 0 && threads != 0 && threads <= kMaximumThreads && launch.sharedBytes <= kMaximumSharedBytes)
        return true;
    snprintf(launch.message, launch.messageBytes,
        "%llu blocks of %llu threads and %u bytes of shared memory: at most %u threads and %zu bytes, at least 1",
        blocks, threads, launch.sharedBytes, kMaximumThreads, kMaximumSharedBytes);
    return false;
}

bool checkClusters(const Launch& launch)
{
    const emulated::Index3 &grid = launch.grid, &cluster = launch.cluster;
    const uint64 blocks = volume(cluster);
    if (blocks == 0 || blocks > kMaximumCluster)
    {
        snprintf(launch.message, launch.messageBytes, "a cluster of %llu blocks: 1 to %u are possible", blocks,
            kMaximumCluster);
        return false;
    }
    if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0)
    {
        snprintf(launch.message, launch.messageBytes,
            "clusters of %u x %u x %u blocks do not divide a grid of %u x %u x %u", cluster.x, cluster.y, cluster.z,
            grid.x, grid.y, grid.z);
        return false;
    }
    return true;
}

bool checkTogether(const Launch& launch, bool isCooperative)
{
    if (isCooperative && volume(launch.cluster) > 1)
    {
        snprintf(launch.message, launch.messageBytes, "a cooperative launch of clusters is not emulated");
        return false;
    }
    if (volume(launch.together) > kMaximumTogether)
    {
        snprintf(launch.message, launch.messageBytes, "a cooperative launch of %llu blocks: at most %llu are emulated",
            volume(launch.together), kMaximumTogether);
        return false;
    }
    // These blocks share an operating system thread, and static shared memory belongs to that.
    if (volume(launch.together) > 1 && launch.staticBytes != 0)
    {
        snprintf(launch.message, launch.messageBytes,
            "a kernel with %zu bytes of static shared memory in a cluster or a cooperative launch: only dynamic shared "
            "memory is emulated there",
            launch.staticBytes);
        return false;
    }
    return true;
}

} // namespace

} // namespace wpk::emulator

using namespace wpk::emulator;

// Runs one kernel over its grid on `threads` operating system threads (one, where it is launched early); launches
// wait for one another.
// `arguments` are pointers to the values, as cuLaunchKernel takes them. Returns 0, or 1 with `message` set.
WPK_API int wpk_emulator_launch(void (*kernel)(void**), void** arguments, const uint32_t* grid, const uint32_t* block,
    const uint32_t* cluster, uint32_t shared_bytes, uint32_t threads, uint32_t modes, uint64_t seed,
    uint32_t is_cooperative, uint32_t is_early, const Pages* awaited, size_t awaited_count, Statistics* statistics,
    char* message, size_t message_bytes)
{
    const std::lock_guard<std::mutex> lock(launchMutex);
    Launch launch{};
    launch.kernel = kernel;
    launch.arguments = arguments;
    launch.grid = {grid[0], grid[1], grid[2]};
    launch.block = {block[0], block[1], block[2]};
    launch.cluster = {cluster[0], cluster[1], cluster[2]};
    launch.sharedBytes = shared_bytes;
    launch.modes = modes;
    launch.seed = seed;
    launch.message = message;
    launch.messageBytes = message_bytes;
    findStaticShared(launch);
    launch.together = is_cooperative ? launch.grid : launch.cluster;
    if (!checkBlocks(launch) || !checkClusters(launch) || !checkTogether(launch, is_cooperative != 0))
        return 1;
    launch.clusters = volume(launch.grid) / volume(launch.together);
    if (threads > launch.clusters)
        threads = static_cast<uint32_t>(launch.clusters);
    if (is_early)
    {
        threads = 1;
        beginEarlyLaunch(awaited, awaited_count);
    }
    runWorkers(launch, threads);
    if (is_early)
        endEarlyLaunch();
    *statistics = sumStatistics(threads);
    return launch.failed ? 1 : 0;
}
