// What the portable headers ask of the emulator, and the CUDA builtins in its terms. Host compiler only.
//
// This is the interface alone: the runtime library of this folder implements the functions
// below, and kernels are linked against it. Builtins that kernels may use are threadIdx, blockIdx,
// blockDim, gridDim, __shared__, __align__, __restrict__, __syncthreads, __syncthreads_or, __syncwarp, __threadfence,
// atomicAdd, atomicMax in shared memory, and the functions that are declared below.
//
// WPK_EMULATOR_CHECKS (0 or 1) is given by the build: with 1, copies and shared accesses go through
// the runtime, which delays, poisons, checks and counts them; with 0 they are plain memory operations.
#pragma once

#include <stdint.h>
#include <string.h>

#ifndef WPK_EMULATOR_CHECKS
#define WPK_EMULATOR_CHECKS 0
#endif

// Of math.h. Its C++ form takes twice as long to read as a kernel takes to compile.
extern "C"
{
    float acosf(float) noexcept;
    float acoshf(float) noexcept;
    float asinf(float) noexcept;
    float asinhf(float) noexcept;
    float atan2f(float, float) noexcept;
    float atanf(float) noexcept;
    float atanhf(float) noexcept;
    float ceilf(float) noexcept;
    float copysignf(float, float) noexcept;
    float cosf(float) noexcept;
    float coshf(float) noexcept;
    float erff(float) noexcept;
    float exp2f(float) noexcept;
    float expf(float) noexcept;
    float expm1f(float) noexcept;
    float fabsf(float) noexcept;
    float floorf(float) noexcept;
    float fmaf(float, float, float) noexcept;
    float fmaxf(float, float) noexcept;
    float fminf(float, float) noexcept;
    float fmodf(float, float) noexcept;
    float log1pf(float) noexcept;
    float log2f(float) noexcept;
    float logf(float) noexcept;
    float powf(float, float) noexcept;
    float rintf(float) noexcept;
    float roundf(float) noexcept;
    float rsqrtf(float) noexcept; // only the newest C libraries have it: the runtime's own
    float sinf(float) noexcept;
    float sinhf(float) noexcept;
    float sqrtf(float) noexcept;
    float tanf(float) noexcept;
    float tanhf(float) noexcept;
    float truncf(float) noexcept;
    double acos(double) noexcept;
    double acosh(double) noexcept;
    double asin(double) noexcept;
    double asinh(double) noexcept;
    double atan(double) noexcept;
    double atanh(double) noexcept;
    double ceil(double) noexcept;
    double cos(double) noexcept;
    double cosh(double) noexcept;
    double erf(double) noexcept;
    double exp(double) noexcept;
    double fabs(double) noexcept;
    double floor(double) noexcept;
    double fma(double, double, double) noexcept;
    double fmax(double, double) noexcept;
    double fmod(double, double) noexcept;
    double log(double) noexcept;
    double log1p(double) noexcept;
    double pow(double, double) noexcept;
    double rint(double) noexcept;
    double sin(double) noexcept;
    double sinh(double) noexcept;
    double sqrt(double) noexcept;
    double tan(double) noexcept;
    double tanh(double) noexcept;
}

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __align__(bytes) __attribute__((aligned(bytes)))
// Static shared memory: a block never leaves its operating system thread.
#define __shared__ static thread_local
#define __constant__ static

namespace wpk::emulated
{

struct Index3
{
    uint32 x, y, z;
};

struct Block
{
    Index3 index, size, grid;
    char* shared;                 // dynamic shared memory, 1024-byte aligned
    uint32 sharedBytes;           // as given at the launch
    uint32 rank, blocksOfCluster; // its number in its cluster, and how many there are
};

// One CUDA thread, as far as kernels see it.
struct Thread
{
    Index3 index;
    uint32 lane;
    Block* block;
};

// The operations for which the lanes of a warp meet; the runtime holds one function for each.
enum class Collective : uint32
{
    syncWarp,
    shuffle,
    vote,
    reduce,
    loadMatrix,
    storeMatrices,
    mmaTile,
    wgmma,
    wgmmaFence,
    wgmmaCommit,
    wgmmaWait,
    clusterArrive,
    clusterWait,
    namedBarrier, // lanes do not meet in these three: they sleep there
    mbarrier,
    gridBarrier
};

// Operands of the collectives: every lane passes the address of its own.
struct ShuffleOperands
{
    uint32 value, result;
    uint32 source; // the lane to read
};
struct VoteOperands
{
    uint32 predicate, result;
};
struct ReduceOperands
{
    float value, result;
    uint32 isMaximum; // 0: sum
};
struct LoadMatrixOperands
{
    uint32* registers; // four
    unsigned long row; // shared address of the 16-byte row of this lane
    uint32 transposed;
};
struct StoreMatricesOperands
{
    const uint32* words; // of this lane's place in each tile
    uint32* row;         // four: the row that this lane stores, if it stores one
    const void* at;      // where
    uint32 tiles;
};
enum class MmaType : uint32
{
    half,
    bfloat16,
    tf32,
    int8Int8, // bytes, of A and of B, whose sums are int32
    int8Uint8,
    uint8Int8,
    uint8Uint8
};
struct MmaTileOperands
{
    void* accumulators; // [tilesM][tilesN][4], float or int32
    const uint32* a;    // [tilesM][4]
    const uint32* b;    // [tilesN][2]
    uint32 tilesM, tilesN;
    MmaType type;
};
struct WgmmaOperands
{
    float* accumulators;     // columns / 2 of them; of bytes int32
    const uint32* registers; // four, of A; null where A lies in shared memory
    uint64 a, b;             // shared-memory descriptors
    uint32 columns, accumulate;
    bool acrossA, acrossB; // neighbours in memory are neighbours along M or N
    MmaType type;
};

} // namespace wpk::emulated

extern "C"
{
    extern __thread wpk::emulated::Thread* wpk_emulator_thread __attribute__((tls_model("initial-exec")));
    // The lanes of `mask` meet; the last to arrive runs `kind` for all of them.
    void wpk_emulator_collective(uint32_t mask, wpk::emulated::Collective kind, void* operands);
    void wpk_emulator_barrier();
    // The same; whether `predicate` holds in any thread.
    int wpk_emulator_barrier_or(int predicate);
    // A barrier of `threads` threads of the block; `number` is not 0.
    void wpk_emulator_named_barrier(int number, int threads);
    [[noreturn]] void wpk_emulator_fail(const char* what);
    void wpk_emulator_copy_async(unsigned long target, const void* source, int bytes, int valid);
    void wpk_emulator_commit_copies();
    void wpk_emulator_wait_copies(int pending);
    // A vector access of `bytes` at `address`: alignment, and bank conflicts when it is shared memory.
    void wpk_emulator_access(const void* address, uint32_t bytes, uint32_t is_store);
    // A __threadfence; and an atomicAdd of an integer, which counts what the block has written before.
    void wpk_emulator_fence();
    void wpk_emulator_count();
    // Blocks of a cooperative launch: one more has arrived; the number is at least `arrivals`.
    void wpk_emulator_grid_arrive(int* counter);
    void wpk_emulator_grid_wait(const int* counter, int arrivals);
    // A word that others wait for, by its upper half; and the lower half of one that has come.
    void wpk_emulator_grid_publish(unsigned long long* word, unsigned long long value);
    uint32_t wpk_emulator_grid_await(const unsigned long long* word, uint32_t tag);
    // The kernels in front have ended, and what they wrote can be read.
    void wpk_emulator_wait_previous();
    void wpk_emulator_mbarrier_init(unsigned long barrier, int count);
    // The barrier may lie in another block of the cluster.
    void wpk_emulator_mbarrier_arrive(unsigned long barrier, int transaction_bytes);
    void wpk_emulator_mbarrier_wait(unsigned long barrier, int parity);
    void wpk_emulator_cluster_arrive();
    void wpk_emulator_cluster_wait();
    // Where block `rank` of the cluster has what this block has at the shared `address`.
    unsigned long wpk_emulator_cluster_address(unsigned long address, int rank);
    // An access of `bytes` in the shared memory of any block of the cluster.
    void wpk_emulator_cluster_access(unsigned long address, uint32_t bytes);
    // Asynchronous writes into shared memory, whose bytes a barrier in the same block counts.
    void wpk_emulator_tensor_copy(unsigned long target, const void* map, unsigned long barrier, const int* coordinates,
        int rank, const uint16_t* offsets, uint32_t blocks);
    void wpk_emulator_bulk_copy(unsigned long target, const void* source, int bytes, unsigned long barrier);
    void wpk_emulator_async_store(unsigned long target, const void* value, int bytes, unsigned long barrier);
    // Asynchronous copies of a box out of shared memory, in groups of the calling thread.
    void wpk_emulator_tensor_store(const void* map, const int* coordinates, int rank, unsigned long source);
    void wpk_emulator_commit_stores();
    void wpk_emulator_wait_stores(int pending);
    // What this thread wrote to shared memory can be read by asynchronous operations.
    void wpk_emulator_proxy_fence();
}

#define threadIdx (wpk_emulator_thread->index)
#define blockIdx (wpk_emulator_thread->block->index)
#define blockDim (wpk_emulator_thread->block->size)
#define gridDim (wpk_emulator_thread->block->grid)

static inline void __syncthreads()
{
    wpk_emulator_barrier();
}
static inline int __syncthreads_or(int predicate)
{
    return wpk_emulator_barrier_or(predicate);
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    wpk_emulator_collective(mask, wpk::emulated::Collective::syncWarp, nullptr);
}
static inline void __threadfence()
{
#if WPK_EMULATOR_CHECKS
    wpk_emulator_fence();
#endif
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static inline int atomicAdd(int* target, int value)
{
#if WPK_EMULATOR_CHECKS
    wpk_emulator_count();
#endif
    return __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
}
static inline unsigned atomicAdd(unsigned* target, unsigned value)
{
#if WPK_EMULATOR_CHECKS
    wpk_emulator_count();
#endif
    return __atomic_fetch_add(target, value, __ATOMIC_RELAXED);
}
// Of shared memory: it hands nothing on to other blocks, as a count does.
static inline int atomicMax(int* target, int value)
{
    int old = __atomic_load_n(target, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(target, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    {
    }
    return old;
}
static inline float atomicAdd(float* target, float value)
{
    uint32_t* bits = reinterpret_cast<uint32_t*>(target);
    uint32_t old = __atomic_load_n(bits, __ATOMIC_RELAXED), next;
    float before;
    do
    {
        memcpy(&before, &old, 4);
        const float after = before + value;
        memcpy(&next, &after, 4);
    } while (!__atomic_compare_exchange_n(bits, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return before;
}

namespace wpk::emulated
{

template <int... I>
struct Indices
{
};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...>
{
};
template <int... I>
struct MakeIndices<0, I...>
{
    using Type = Indices<I...>;
};

template <class T>
struct Stored
{
    using Type = T;
};
template <class T>
struct Stored<const T>
{
    using Type = T;
};

template <class... Parameters, int... I>
inline void applyIndexed(void (*kernel)(Parameters...), void** arguments, Indices<I...>)
{
    kernel(*reinterpret_cast<typename Stored<Parameters>::Type*>(arguments[I])...);
}

// Calls `kernel` with arguments given as cuLaunchKernel takes them: one pointer to each value.
template <class... Parameters>
inline void apply(void (*kernel)(Parameters...), void** arguments)
{
    applyIndexed(kernel, arguments, typename MakeIndices<sizeof...(Parameters)>::Type());
}

} // namespace wpk::emulated
