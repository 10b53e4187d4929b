// The state of a launch: fibers (one a CUDA thread), warps, and workers (one an operating system thread).
//
// A worker executes one block at a time, all of whose fibers stay on it. Lanes of a warp run one after
// another until each reaches a rendezvous; warps run one after another until all wait.
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
    std::vector<Copy> copies;
    std::vector<size_t> groups; // end of each committed group in `copies`
    std::vector<Access> accesses;
    bool stored = false; // to global memory, since the last barrier and with no fence of its own after it
    bool fenced = false; // since the last barrier
};

struct alignas(64) Fiber : emulated::Thread
{
    void* stack;
    Warp* warp;
    void* operands; // of the collective that it waits at
    Collective kind;
    uint32 mask;
    FiberChecks* checks;
};

struct WgmmaPending
{
    float* accumulators[32];
    emulated::WgmmaOperands operands;
};

struct Warp
{
    uint32 runnable, arrived, live, barred;
    Fiber* fibers;
    uint32 index;
    std::vector<WgmmaPending> wgmmas;
    std::vector<size_t> wgmmaGroups;
};

// A tensor copy whose bytes have not landed yet.
struct TensorCopy
{
    unsigned long target, barrier;
    const void* map;
    int coordinates[5];
    int rank;
};

struct Launch
{
    void (*kernel)(void**);
    void** arguments;
    emulated::Index3 grid, block;
    uint32 sharedBytes, modes;
    uint64 seed, blocks;
    std::atomic<uint64> nextBlock{0};
    std::atomic<bool> failed{false};
    char* message;
    size_t messageBytes;
    size_t staticModule = 0, staticBytes = 0; // thread-local storage of the kernel's library
};

struct Worker
{
    static constexpr size_t kStackBytes = 64 * 1024;
    static constexpr size_t kPageBytes = 4096;

    Launch* launch = nullptr;
    emulated::Block block{};
    std::vector<Fiber> fibers;
    std::vector<FiberChecks> checks;
    std::vector<Warp> warps;
    void* returnStack = nullptr; // of the worker itself, while a fiber runs
    uint32 live = 0, barred = 0;
    bool unfenced = false; // a store to global memory lies before the last barrier, and no fence after it
    uint64 progress = 0, polledProgress = 0;
    uint32 idlePolls = 0;
    uint64 random = 1;
    Statistics statistics;
    std::vector<TensorCopy> tensorCopies;
    char* stacks = nullptr;
    size_t stackCount = 0;
    char* sharedEnd = nullptr; // a guard region begins here
    char* staticShared = nullptr;
    alignas(64) float a[16][16][16]; // operands of a tile product, widened to float
    alignas(64) float b[32][16][16];
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

// More than any GPU gives a block.
constexpr size_t kMaximumSharedBytes = 1 << 20;

// Ends the launch with an error that names the current block and thread; returns to the worker.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// Lets other fibers run, then returns.
void yieldNow();
// In the random order, yields now and then.
void yieldSometimes();
// True when [address, address + bytes) lies in the shared memory of the running block; then `offset`
// is its distance from the start of dynamic (or static) shared memory.
bool findShared(unsigned long address, size_t bytes, uint32* offset);

void runCollective(Collective kind, Warp& warp, uint32 mask);
void runShuffle(Warp& warp, uint32 mask);
void runVote(Warp& warp, uint32 mask);
void runReduce(Warp& warp, uint32 mask);
void runLoadMatrix(Warp& warp, uint32 mask);
void runMmaTile(Warp& warp, uint32 mask);
void runWgmma(Warp& warp, uint32 mask);
void runWgmmaCommit(Warp& warp, uint32 mask);
void runWgmmaWait(Warp& warp, uint32 mask);

// Bank conflicts of one phase: lanes whose accesses of `bytes` each go out together.
void countPhase(AccessKind kind, const uint32* offsets, int lanes, uint32 bytes);
// Counts what the lanes of a warp have logged since its last rendezvous.
void countAccesses(Warp& warp);
void logAccess(const void* site, unsigned long address, uint32 bytes, AccessKind kind);

// Notes a store; all stores lie before what follows a barrier.
void noteStore(const void* address);
void orderStores(Worker& worker);

// Lands one pending tensor copy; false when there is none.
bool landTensorCopy();

void prepareWorker(Worker& worker, Launch& launch);
void runBlocks(Worker& worker);
void installFaultHandlers();
void removeFaultHandlers();
void useSignalStack(Worker& worker);

} // namespace wpk::emulator
