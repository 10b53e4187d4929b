// The state of a launch: fibers (one a CUDA thread), warps, and workers (one an operating system thread).
//
// A worker executes the blocks of one cluster at a time (of a cluster of one, where there are none; of a cooperative
// launch the whole grid), all of whose fibers stay on it. Lanes of a warp run one after another until each reaches a
// rendezvous; warps run one after another until all wait.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <wpk/kernels/portable.cuh>
#undef __shared__
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __align__
#undef threadIdx
#undef blockIdx
#undef blockDim
#undef gridDim

#include "async_state.h"

#define WPK_API extern "C" __attribute__((visibility("default")))

namespace wpk::emulator
{

using emulated::Collective;

// What a launch checks beyond illegal addresses and deadlocks; bits of Launch::modes.
enum Mode : uint32
{
    kLateCopies = 1,  // asynchronous work takes effect only when it is waited for; NaN until then
    kRandomOrder = 2, // warps and lanes run in a seeded random order, and yield at memory accesses
    kPoison = 4,      // shared memory begins as NaN, and its end is watched
    kCountBanks = 8,  // bank conflicts are counted
};

// Kinds of shared-memory access whose bank conflicts are counted apart.
enum AccessKind : uint32
{
    kLoad,
    kStore,
    kMatrixLoad,
    kCopy,
    kAccessKinds
};

struct Statistics
{
    uint64 collectives = 0;
    uint64 phases[kAccessKinds] = {};    // passes that the accesses need at least
    uint64 conflicts[kAccessKinds] = {}; // passes on top of these
    uint64 uncounted = 0;                // accesses beyond the log's size
};

struct Warp;

struct Copy
{
    unsigned long target;
    const void* source;
    int bytes, valid;
};

struct Access
{
    const void* site;
    uint32 offset; // from the start of the shared memory
    uint16 bytes, kind;
};

// The fields of a fiber in checking mode, kept apart so that the fast mode touches one cache line.
struct FiberChecks
{
    Groups<Copy> copies;
    std::vector<Access> accesses;
    Groups<AsyncStore> asyncStores;
    std::vector<uint32> unfencedChunks; // of shared memory, that this thread wrote and did not fence
    bool stored = false; // to global memory, since the last barrier and with no fence of its own after it
    bool fenced = false; // since the last barrier

    void clear()
    {
        copies.clear();
        accesses.clear();
        asyncStores.clear();
        unfencedChunks.clear();
        stored = fenced = false;
    }
};

struct alignas(64) Fiber : emulated::Thread
{
    void* stack;
    Warp* warp;
    void* operands; // of the collective that it waits at; while it sleeps, the barrier that it waits for
    Collective kind;
    uint32 mask; // while it sleeps, the parity that it waits for
    FiberChecks* checks;
};
static_assert(sizeof(Fiber) == 64, "one cache line");

struct Warp
{
    uint32 runnable, arrived, live, barred;
    uint32 asleep;                          // lanes that wait for a barrier in shared memory, or for the cluster's
    uint32 clusterArrived, clusterUnwaited; // lanes at the cluster's barrier: of this phase; that have not waited
    uint32 lanes;                           // how many it has
    Fiber* fibers;
    uint32 index; // in its block
    uint32 place; // in its worker
    bool wgmmaFenced;
    Groups<WgmmaPending> wgmmas;
    std::vector<WgmmaTarget> wgmmaTargets;
};

// A barrier of some of a block's threads.
struct NamedBarrier
{
    uint32 threads, arrived, phase;
};
constexpr uint32 kNamedBarriers = 16;

// Who has initialised a barrier in shared memory, and after how many of its block's and the cluster's phases.
struct BarrierOrigin
{
    unsigned long barrier;
    const Fiber* thread;
    uint32 blockPhases;
    uint64 clusterPhases;
};

struct RunningBlock : emulated::Block
{
    uint32 live, barred;
    bool vote, voted; // whether a predicate holds at this barrier so far; at the one before
    bool unfenced;    // a store to global memory lies before the last barrier, and no fence after it
    char* sharedEnd;  // a guard region begins here
    uint32 firstWarp, warps, firstFiber, threads;
    uint32 phases; // of its barriers, named ones too, that have ended
    NamedBarrier namedBarriers[kNamedBarriers];
    std::vector<uint16> writers; // of each chunk of shared memory: 1 + the thread that has not fenced its write
};

struct Launch
{
    void (*kernel)(void**);
    void** arguments;
    emulated::Index3 grid, block, cluster;
    emulated::Index3 together; // blocks that are executed at once: a cluster, or the grid of a cooperative launch
    uint32 sharedBytes, modes;
    uint64 seed, clusters;
    std::atomic<uint64> nextCluster{0};
    std::atomic<bool> failed{false};
    char* message;
    size_t messageBytes;
    size_t staticModule = 0, staticBytes = 0; // thread-local storage of the kernel's library
};

struct Worker
{
#ifdef __SANITIZE_ADDRESS__ // puts room between local variables
    static constexpr size_t kStackBytes = 512 * 1024;
#else
    static constexpr size_t kStackBytes = 64 * 1024;
#endif
    static constexpr size_t kPageBytes = 4096;

    Launch* launch = nullptr;
    std::vector<RunningBlock> blocks;
    std::vector<Fiber> fibers;
    std::vector<FiberChecks> checks;
    std::vector<Warp> warps;
    void* returnStack = nullptr; // of the worker itself, while a fiber runs
    uint32 live = 0;             // threads of all blocks
    uint64 clusterPhases = 0;    // of the cluster's barrier, that have ended
    uint64 random = 1;
    Statistics statistics;
    std::vector<AsyncWrite> asyncWrites;
    std::vector<BarrierOrigin> barrierOrigins; // when checking
    char* stacks = nullptr;
    size_t stackCount = 0;
    std::vector<char*> sharedEnds; // of the shared memory of each block
    char* staticShared = nullptr;
    // Operands of a tile product, widened: to float, or of bytes to int16, whose neighbours lie along k.
    union
    {
        alignas(64) float a[16][16][16];
        std::int16_t bytesA[16][16][32];
    };
    union
    {
        alignas(64) float b[32][16][16];
        std::int16_t bytesB[64][8][32];
    };
    alignas(64) char signalStack[64 * 1024];    // of the signal handler
    alignas(64) char emergencyStack[16 * 1024]; // for the report of a fault

    bool has(Mode mode) const
    {
        return (launch->modes & mode) != 0;
    }
    uint32 draw()
    {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<uint32>(random >> 33);
    }
};

extern __thread Worker* worker __attribute__((tls_model("initial-exec")));

inline Fiber* currentFiber()
{
    return static_cast<Fiber*>(wpk_emulator_thread);
}
inline RunningBlock& currentBlock()
{
    return *static_cast<RunningBlock*>(wpk_emulator_thread->block);
}

// More than any GPU gives a block.
constexpr size_t kMaximumSharedBytes = 1 << 20;
// What a launch may ask for beyond the portable size of 8.
constexpr uint32 kMaximumCluster = 16;
// Granularity at which unfenced writes to shared memory are known.
constexpr uint32 kChunkBytes = 16;

// Ends the launch with an error that names the current block and thread; returns to the worker.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Lets other fibers run, then returns.
void yieldNow();
// Returns when somebody has called wakeSleepers: the caller then looks whether what it waits for has come.
void sleepFor(Collective kind, const void* barrier, uint32 parity);
void wakeSleepers();
[[noreturn]] void failDeadlock();
// In the random order, yields now and then.
void yieldSometimes();
// True when [address, address + bytes) lies in the shared memory of the running block; then `offset`
// is its distance from the start of dynamic (or static) shared memory.
bool findShared(unsigned long address, size_t bytes, uint32* offset);
// The block of the cluster whose dynamic shared memory [address, address + bytes) lies in; null when there is
// none.
RunningBlock* blockAt(unsigned long address, size_t bytes, uint32* offset);
// The same of a block that is still running; `what` names the access that fails otherwise.
RunningBlock& liveBlockAt(unsigned long address, size_t bytes, const char* what);

const char* nameOf(Collective kind);
void runCollective(Collective kind, Warp& warp, uint32 mask);
void runShuffle(Warp& warp, uint32 mask);
void runVote(Warp& warp, uint32 mask);
void runReduce(Warp& warp, uint32 mask);
void runLoadMatrix(Warp& warp, uint32 mask);
void runStoreMatrices(Warp& warp, uint32 mask);
void runMmaTile(Warp& warp, uint32 mask);
void runWgmma(Warp& warp, uint32 mask);
void runWgmmaFence(Warp& warp, uint32 mask);
void runWgmmaCommit(Warp& warp, uint32 mask);
void runWgmmaWait(Warp& warp, uint32 mask);
void runClusterArrive(Warp& warp, uint32 mask);
void runClusterWait(Warp& warp, uint32 mask);
// Ends the phase of the cluster's barrier when all threads that have not ended have arrived.
void completeClusterPhase();

// Bank conflicts of one phase: lanes whose accesses of `bytes` each go out together.
void countPhase(AccessKind kind, const uint32* offsets, int lanes, uint32 bytes);
// Counts what the lanes of a warp have logged since its last rendezvous.
void countAccesses(Warp& warp);
void logAccess(const void* site, unsigned long address, uint32 bytes, AccessKind kind);

// Notes a store; all stores lie before what follows a barrier.
void noteStore(const void* address, uint32 bytes);
void orderStores(RunningBlock& block);

// Barriers in shared memory.
void landBytes(unsigned long barrier, int bytes);
void describeBarrier(const void* barrier, uint32 parity, char* text, size_t size);

// Lands one pending write; false when there is none.
bool landAsyncWrite();
// What a thread, and a block, may not leave behind at its end.
void checkThreadEnd(Fiber& fiber);
void checkBlockEnd(const RunningBlock& block);

// Notes what the current thread wrote to shared memory.
void noteSharedWrite(uint32 offset, uint32 bytes);
// Fails where a barrier lies: from its initialisation on its memory is for nothing else.
void requireNoBarrier(unsigned long address, uint32 bytes);
// Fails where an asynchronous operation `what` reads what no fence has made visible to it.
void checkFenced(const RunningBlock& block, uint32 offset, uint32 bytes, const char* what);

// The box that a tensor map says, from the tensor to shared memory or, for a store, back.
void loadBox(const AsyncWrite& write, RunningBlock& block);
void storeBox(const AsyncStore& store, RunningBlock& block);
// Bytes of the box in shared memory.
size_t boxBytes(const void* map);
// Fails where the map and a copy `what` of `rank` coordinates do not belong together, or `shared` is misplaced.
void checkBox(const void* map, const int* coordinates, int rank, bool im2col, unsigned long shared, const char* what);
void checkPixels(const void* map, const int* coordinates);

void prepareWorker(Worker& worker, Launch& launch);
void runClusters(Worker& worker);
void installFaultHandlers();
void removeFaultHandlers();
void useSignalStack(Worker& worker);

} // namespace wpk::emulator
