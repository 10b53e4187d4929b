// Asynchronous tensor-core products of a warpgroup (wgmma, sm_90a): four warps, the first of them a multiple of
// four, multiply a 64 x K tile of A by a K x N tile of B, K = 16 for Half and Bfloat16, 8 for Tf32, 32 for Bytes of
// integers (32 bytes).
//
// Warp w of the group holds rows 16 w .. 16 w + 15 of the result; in it, d[4 j + i] is value i of the 16 x 8
// accumulator tile at column 8 j (the layout D of mma.cuh). B lies in shared memory, A too, or in registers: the
// rows of a warp as the layout A of mma.cuh.
//
// A tile in shared memory is told by a descriptor (matrixDescriptor). Its 16-byte pieces are swizzled as
// copyTensor swizzles a box. Its two offsets say, in bytes:
//
//   along K (Major::k), swizzle S = 32, 64, 128: rows of S bytes; `stride` from eight rows to the next eight.
//     A product advances by 32 bytes along K within the row.
//   along K, no swizzle: eight rows of 16 bytes make a piece of 128; `stride` from a piece to that of the next
//     eight rows, `leading` to that of the next 16 bytes along K.
//   across K (Major::mn, 16-bit types only), swizzle S: rows of S / 2 values of M or N, one for each k; `stride`
//     from eight k to the next eight, `leading` from S / 2 values of M or N to the next.
//   across K, no swizzle: eight k with 8 values of M or N each make a piece; `stride` from a piece to that of the
//     next 8 values, `leading` to that of the next eight k.
//
// Tiles are aligned to eight times the swizzle, without swizzle to 128 bytes. What threads wrote there is read
// behind fenceAsyncProxy (tma.cuh) and a barrier.
#pragma once

#include <wpk/kernels/mma/mma.cuh>
#include <wpk/kernels/wgmma/instructions.cuh>

namespace wpk
{

// Orders the warpgroup's accesses to registers before its next products: in front of the first of them, and
// again behind every waitWgmma.
WPK_DEVICE void fenceWgmma()
{
#if WPK_ON_GPU
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#elif WPK_EMULATOR_CHECKS
    wpk_emulator_collective(~0u, emulated::Collective::wgmmaFence, nullptr);
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

// Waits until at most N groups are still under way: the accumulators and A registers of the others may be used,
// their shared memory written.
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

// The same, and no use of `d` is moved in front of the wait: a compiler sees no other tie between the two, and
// ptxas would make products wait for each other. For the last wait before d is used; d is not under way behind it.
template <int N, class Sum, int Count>
WPK_DEVICE void waitWgmma(Sum (&d)[Count])
{
    waitWgmma<N>();
#if WPK_ON_GPU
    WPK_UNROLL
    for (int i = 0; i < Count; ++i)
    {
        if constexpr (isSame<Sum, float>)
            asm volatile("" : "+f"(d[i])::"memory");
        else
            asm volatile("" : "+r"(d[i])::"memory");
    }
#endif
}

// What `bits` are made of is computed before what follows, a wait above all: ptxas moves a wait up in front of
// everything that nothing ties to it, so that what should be beside products is computed behind them. Here an
// instruction that has to stay depends on the bits, and whether it sleeps for no time, which is all that it may do,
// matters to nobody.
WPK_DEVICE void computeFirst(uint32 bits)
{
#if WPK_ON_GPU
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 0x7fc0ffee; @p nanosleep.u32 0; }" ::"r"(bits) : "memory");
#else
    static_cast<void>(bits);
#endif
}

// Values are there, and their registers hold nothing else, up to here. Behind a wait for registers of A, which
// products have read; in front of products for what is computed from accumulators, which they write again.
template <int N>
WPK_DEVICE void keepUntilHere(float (&values)[N])
{
#if WPK_ON_GPU
    WPK_UNROLL
    for (int i = 0; i < N; ++i)
        asm volatile("" : "+f"(values[i])::"memory");
#else
    static_cast<void>(values);
#endif
}
template <int N, int M>
WPK_DEVICE void keepUntilHere(uint32 (&a)[N][M])
{
#if WPK_ON_GPU
    WPK_UNROLL
    for (int i = 0; i < N; ++i)
    {
        WPK_UNROLL
        for (int j = 0; j < M; ++j)
            asm volatile("" : "+r"(a[i][j])::"memory");
    }
#else
    static_cast<void>(a);
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

// The descriptor of a tile that starts at `tile`, see the top of this file; Swizzle is 0, 32, 64 or 128. Offsets
// are multiples of 16 below 2^18. The start advances by 16 bytes for every 1 that is added.
template <int Swizzle>
WPK_DEVICE uint64 matrixDescriptor(SharedAddress tile, int leading, int stride)
{
    static_assert(Swizzle == 0 || Swizzle == 32 || Swizzle == 64 || Swizzle == 128, "swizzles that wgmma knows");
    constexpr uint64 kMode = Swizzle == 128 ? 1 : Swizzle == 64 ? 2 : Swizzle == 32 ? 3 : 0;
#if !WPK_ON_GPU
    tile -= reinterpret_cast<SharedAddress>(wpk_emulator_thread->block->shared);
#endif
    return static_cast<uint64>((tile & 0x3ffff) >> 4) | static_cast<uint64>(leading >> 4) << 16
           | static_cast<uint64>(stride >> 4) << 32 | kMode << 62;
}

// The descriptor of a tile along K whose rows have the length of the swizzle and lie densely, as copyTensor
// writes a box of them.
template <int Swizzle = 128>
WPK_DEVICE uint64 swizzledDescriptor(SharedAddress tile)
{
    static_assert(Swizzle != 0, "rows of 32, 64 or 128 bytes");
    return matrixDescriptor<Swizzle>(tile, 16, 8 * Swizzle); // the first offset has no meaning here
}

// Whether neighbours in memory are neighbours along K, or along M or N.
enum class Major
{
    k,
    mn
};

namespace detail
{
#if WPK_ON_GPU

template <class T>
struct WgmmaTypes;
template <>
struct WgmmaTypes<Half>
{
    static constexpr const char types[] = "k16.f32.f16.f16";
};
template <>
struct WgmmaTypes<Bfloat16>
{
    static constexpr const char types[] = "k16.f32.bf16.bf16";
};
template <>
struct WgmmaTypes<Tf32>
{
    static constexpr const char types[] = "k8.f32.tf32.tf32";
};

template <class T>
inline constexpr const char* kByteName = isSame<T, int8> ? "s8" : "u8";
template <class A, class B>
struct WgmmaTypes<Bytes<A, B>>
{
    static_assert(isInteger<A> && isInteger<B>, "8-bit floats are multiplied as Half");
    static constexpr char a = kByteName<A>[0], b = kByteName<B>[0];
    static constexpr const char types[] = {'k', '3', '2', '.', 's', '3', '2', '.', a, '8', '.', b, '8', '\0'};
};

// The operands that say how A and B lie; the instructions of Tf32 and Bytes have none.
template <class T, Major A, Major B>
struct WgmmaKind : WgmmaTypes<T>
{
    static constexpr const char majors[] = {',', A == Major::mn ? '1' : '0', ',', B == Major::mn ? '1' : '0', '\0'};
    static constexpr const char majorOfB[] = {',', B == Major::mn ? '1' : '0', '\0'};
};
template <>
struct WgmmaKind<Tf32, Major::k, Major::k> : WgmmaTypes<Tf32>
{
    static constexpr const char majors[] = "";
    static constexpr const char majorOfB[] = "";
};

#else

template <class T, Major A, Major B, class Sum, int Count>
WPK_DEVICE void wgmmaEmulated(Sum (&d)[Count], const uint32* registers, uint64 a, uint64 b, int accumulate)
{
    emulated::WgmmaOperands operands{reinterpret_cast<float*>(d), registers, a, b, 2 * Count,
        static_cast<uint32>(accumulate), A == Major::mn, B == Major::mn, EmulatedMma<T>::type};
    wpk_emulator_collective(~0u, emulated::Collective::wgmma, &operands);
}

#endif

template <class T, Major A, Major B, int Count>
WPK_DEVICE constexpr void checkWgmma()
{
    static_assert(Count % 4 == 0 && 4 <= Count && Count <= 128, "8 to 256 columns, in steps of 8");
    static_assert(MmaDepth<T>::value == 16 || (A == Major::k && B == Major::k), "tf32 and bytes lie along K");
}

} // namespace detail

// d (+)= A * B for T = Half, Bfloat16, Tf32 or Bytes, whose sums are int32; N = 2 * Count columns, 8 to 256 in steps of
// 8, of Bytes of 16 beyond 32. Asynchronous: d is valid after waitWgmma. With `accumulate` 0 the old d is ignored.
template <class T, Major A = Major::k, Major B = Major::k, class Sum, int Count>
WPK_DEVICE void wgmma(Sum (&d)[Count], uint64 a, uint64 b, int accumulate)
{
    detail::checkWgmma<T, A, B, Count>();
    static_assert(isSame<Sum, typename MmaStored<T>::Sum>, "the type in which the unit adds");
#if WPK_ON_GPU
    detail::WgmmaInstruction<Count>::template run<detail::WgmmaKind<T, A, B>>(d, a, b, accumulate);
#else
    detail::wgmmaEmulated<T, A, B>(d, nullptr, a, b, accumulate);
#endif
}

// The same with A in registers, which are not written before waitWgmma.
template <class T, Major B = Major::k, int Count>
WPK_DEVICE void wgmma(float (&d)[Count], const uint32 (&a)[4], uint64 b, int accumulate)
{
    detail::checkWgmma<T, Major::k, B, Count>();
#if WPK_ON_GPU
    detail::WgmmaInstruction<Count>::template run<detail::WgmmaKind<T, Major::k, B>>(d, a, b, accumulate);
#else
    detail::wgmmaEmulated<T, Major::k, B>(d, a, 0, b, accumulate);
#endif
}

} // namespace wpk
