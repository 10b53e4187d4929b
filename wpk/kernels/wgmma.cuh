// Asynchronous tensor-core products of a warpgroup (wgmma, sm_90a): four warps multiply a 64 x 16 tile of A by
// a 16 x N tile of B, both read from shared memory.
//
// Both tiles lie K-major with 128-byte swizzle, as copyTensor writes them: rows of 64 16-bit values (128
// bytes), groups of eight rows 1024 bytes apart, the start aligned to 1024 bytes. Along K the descriptor
// advances by 32 bytes, which is 2, for every 16 values. Warp w of the group holds rows 16 w .. 16 w + 15 of the
// result; in it, d[4 j + i] is value i of the 16 x 8 accumulator tile at column 8 j (the layout D of mma.cuh).
#pragma once

#include <wpk/kernels/mma.cuh>

namespace wpk
{

// Orders the warpgroup's register and shared-memory accesses before its next products.
WPK_DEVICE void fenceWgmma()
{
#if WPK_ON_GPU
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

// Closes the group of products since the last commit.
WPK_DEVICE void commitWgmma()
{
#if WPK_ON_GPU
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_collective(~0u, emulated::Collective::wgmmaCommit, nullptr);
#endif
}

// Waits until at most N groups are still under way: the accumulators of the others may be read, their
// shared memory written.
template <int N>
WPK_DEVICE void waitWgmma()
{
#if WPK_ON_GPU
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
#elif WPK_EMULATOR_CHECKS
    uint32 keep = N;
    wpk_emulator_collective(~0u, emulated::Collective::wgmmaWait, &keep);
#endif
}

// Gives registers back to, or takes them from, the block's pool: the count a thread has afterwards.
template <int Registers>
WPK_DEVICE void releaseRegisters()
{
#if WPK_ON_GPU
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Registers));
#endif
}
template <int Registers>
WPK_DEVICE void claimRegisters()
{
#if WPK_ON_GPU
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Registers));
#endif
}

// The descriptor of a tile that starts at `tile`: 128-byte swizzle, groups of rows 1024 bytes apart.
WPK_DEVICE uint64 swizzledDescriptor(SharedAddress tile)
{
#if !WPK_ON_GPU
    tile -= reinterpret_cast<SharedAddress>(wpk_emulator_thread->block->shared);
#endif
    constexpr uint64 kLeadingStride = 1ull << 16, kGroupStride = 64ull << 32, kSwizzle128 = 1ull << 62;
    return static_cast<uint64>((tile & 0x3ffff) >> 4) | kLeadingStride | kGroupStride | kSwizzle128;
}

#if WPK_ON_GPU
namespace detail
{

#define WPK_NAMES_0                                                          \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"

#define WPK_NAMES_1                                                                    \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
    "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

#define WPK_NAMES_2                                                                    \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"

#define WPK_NAMES_3                                                                                \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"

#define WPK_VALUES_4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define WPK_VALUES_16(i) WPK_VALUES_4(i), WPK_VALUES_4(i + 4), WPK_VALUES_4(i + 8), WPK_VALUES_4(i + 12)
#define WPK_VALUES_32(i) WPK_VALUES_16(i), WPK_VALUES_16(i + 16)
#define WPK_VALUES_64(i) WPK_VALUES_32(i), WPK_VALUES_32(i + 32)
#define WPK_VALUES_128(i) WPK_VALUES_64(i), WPK_VALUES_64(i + 64)

// FIRST, SECOND, THIRD are the numbers of the operands behind the accumulators.
#define WPK_WGMMA(TAG, TYPE, COLUMNS, COUNT, NAMES, FIRST, SECOND, THIRD)                                  \
    WPK_DEVICE void wgmmaAsync(TAG, float(&d)[COUNT], uint64 a, uint64 b, int accumulate)                  \
    {                                                                                                      \
        asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" THIRD ", 0;\n"                                   \
                     "wgmma.mma_async.sync.aligned.m64n" COLUMNS "k16.f32." TYPE "." TYPE " {" NAMES "}, " \
                     "%" FIRST ", %" SECOND ", p, 1, 1, 0, 0;\n}"                                          \
            : WPK_VALUES_##COUNT(0)                                                                        \
            : "l"(a), "l"(b), "r"(accumulate));                                                            \
    }
#define WPK_WGMMA_SIZES(TAG, TYPE)                                                  \
    WPK_WGMMA(TAG, TYPE, "64", 32, WPK_NAMES_0, "32", "33", "34")                   \
    WPK_WGMMA(TAG, TYPE, "128", 64, WPK_NAMES_0 ", " WPK_NAMES_1, "64", "65", "66") \
    WPK_WGMMA(                                                                      \
        TAG, TYPE, "256", 128, WPK_NAMES_0 ", " WPK_NAMES_1 ", " WPK_NAMES_2 ", " WPK_NAMES_3, "128", "129", "130")
WPK_WGMMA_SIZES(Half, "f16")
WPK_WGMMA_SIZES(Bfloat16, "bf16")
#undef WPK_WGMMA_SIZES
#undef WPK_WGMMA
} // namespace detail
#endif

// d (+)= A * B for T = Half or Bfloat16; N = 2 * Count columns, 64, 128 or 256. Asynchronous: d is valid after
// waitWgmma. With `accumulate` 0 the old d is ignored.
template <class T, int Count>
WPK_DEVICE void wgmma(float (&d)[Count], uint64 a, uint64 b, int accumulate)
{
    static_assert(Count == 32 || Count == 64 || Count == 128, "64, 128 or 256 columns");
#if WPK_ON_GPU
    detail::wgmmaAsync(T{}, d, a, b, accumulate);
#else
    emulated::WgmmaOperands operands{d, a, b, 2 * Count, static_cast<uint32>(accumulate), detail::mmaType(T{})};
    wpk_emulator_collective(~0u, emulated::Collective::wgmma, &operands);
#endif
}

} // namespace wpk
