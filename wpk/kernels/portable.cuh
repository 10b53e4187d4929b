// The language that kernels are written in: CUDA C++ for NVRTC, and the same text for g++ and the
// emulator. Every other header of this folder starts here. A kernel uses the CUDA builtins listed in
// wpk/emulator/interface.cuh (threadIdx, __syncthreads, ...), these headers, and nothing else: no PTX of its own and
// no header of the CUDA toolkit.
//
//   WPK_KERNEL(256) wpk_copy(const float* x, float* y, int n) { wpk::copy<float>(x, y, n); }
//   WPK_EXPORT(wpk_copy)
#pragma once

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define WPK_ON_GPU 1
#else
#define WPK_ON_GPU 0
#endif

namespace wpk
{
using int8 = signed char;
using uint8 = unsigned char;
using int16 = short;
using uint16 = unsigned short;
using int32 = int;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;
static_assert(sizeof(int32) == 4 && sizeof(int64) == 8, "the type sizes that CUDA has");
} // namespace wpk

#if !WPK_ON_GPU
#include <wpk/emulator/interface.cuh>
#endif

// WPK_KERNEL(threads): head of a kernel that is launched with at most `threads` threads a block. WPK_KERNEL(threads, 1)
//     lets blocks begin with as many registers as an SM has for one, which kernels that hand them over have to know.
// WPK_EXPORT(name): makes kernel `name` callable by the emulator; nothing on the GPU.
// WPK_DEVICE: a function of the device, always inlined.
// WPK_UNROLL: before a loop whose trip count is a constant.
// WPK_KEEP_LOOP: before a loop that would only take registers if it were unrolled.
// WPK_GRID_CONSTANT: before a `const` struct parameter whose address the kernel takes (tensor maps).
// WPK_SHARED(T, name): declares `T* name`, the dynamic shared memory, 1024-byte aligned.
#if WPK_ON_GPU
#define WPK_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#define WPK_EXPORT(name)
#define WPK_DEVICE __device__ __forceinline__
#define WPK_UNROLL _Pragma("unroll")
#define WPK_KEEP_LOOP _Pragma("unroll 1")
#define WPK_GRID_CONSTANT __grid_constant__
#define WPK_SHARED(T, name)                                              \
    extern __shared__ __align__(1024) unsigned char wpk_shared_memory[]; \
    T* const name = reinterpret_cast<T*>(wpk_shared_memory)
#else
#define WPK_KERNEL(...) static void
#define WPK_EXPORT(name)                                                                     \
    extern "C" __attribute__((visibility("default"))) void name##_emulated(void** arguments) \
    {                                                                                        \
        wpk::emulated::apply(name, arguments);                                               \
    }
#define WPK_DEVICE inline __attribute__((always_inline))
#define WPK_UNROLL
#define WPK_KEEP_LOOP
#define WPK_GRID_CONSTANT
#define WPK_SHARED(T, name) T* const name = reinterpret_cast<T*>(wpk_emulator_thread->block->shared)
#endif

namespace wpk
{

template <class A, class B>
inline constexpr bool isSame = false;
template <class A>
inline constexpr bool isSame<A, A> = true;

namespace detail
{
template <bool Condition, class A, class B>
struct Selected
{
    using Type = A;
};
template <class A, class B>
struct Selected<false, A, B>
{
    using Type = B;
};
} // namespace detail

namespace detail
{
template <class T>
struct Element
{
    using Type = T;
};
template <class T, int N>
struct Element<T[N]> : Element<T>
{
};
} // namespace detail

// What an array of any rank consists of.
template <class Array>
using ElementOf = typename detail::Element<Array>::Type;

// One of two types.
template <bool Condition, class A, class B>
using Select = typename detail::Selected<Condition, A, B>::Type;

// The value; what is computed from it is computed behind this: not in front of a loop, to be kept in registers, and
// not from its parts.
WPK_DEVICE int computedHere(int value)
{
#if WPK_ON_GPU
    asm volatile("" : "+r"(value));
#endif
    return value;
}
WPK_DEVICE int64 computedHere(int64 value)
{
#if WPK_ON_GPU
    asm volatile("" : "+l"(value));
#endif
    return value;
}

// An address of shared memory as the copy and matrix instructions take it. Byte arithmetic is allowed.
// 32 bits wide on the GPU, a full pointer in the emulator: never store one as `unsigned`.
#if WPK_ON_GPU
using SharedAddress = uint32;
WPK_DEVICE SharedAddress sharedAddress(const void* pointer)
{
    return static_cast<SharedAddress>(__cvta_generic_to_shared(pointer));
}
#else
using SharedAddress = unsigned long;
WPK_DEVICE SharedAddress sharedAddress(const void* pointer)
{
    return reinterpret_cast<SharedAddress>(pointer);
}
#endif

template <class T>
WPK_DEVICE constexpr T minOf(T a, T b)
{
    return b < a ? b : a;
}

template <class T>
WPK_DEVICE constexpr T maxOf(T a, T b)
{
    return a < b ? b : a;
}

// Quotient rounded up, for a >= 0 and b > 0.
template <class T>
WPK_DEVICE constexpr T ceilDivide(T a, T b)
{
    return (a + b - 1) / b;
}

// The greatest common divisor of positive numbers.
WPK_DEVICE constexpr int commonDivisor(int a, int b)
{
    return b == 0 ? a : commonDivisor(b, a % b);
}

} // namespace wpk
