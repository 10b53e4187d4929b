#include <wpk/schedules/gemm_skinny.cuh>

namespace {
struct Problem {
  using A = wpk::Bfloat16;
  using B = wpk::Bfloat16;
  using M = wpk::Runtime;
  static constexpr int batch_middle = 1;
  static constexpr int n = 1000;
  static constexpr int k = 1280;
  static constexpr wpk::int64 a_outer = 0;
  static constexpr wpk::int64 a_middle = 0;
  static constexpr wpk::int64 b_outer = 0;
  static constexpr wpk::int64 b_middle = 0;
  static constexpr bool b_constant = true;
  using Y = wpk::Strided<wpk::Bfloat16, 1, 0, 0, 1000, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 1, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int y_padding = 0;
  static constexpr wpk::int64 a_m = 1280;
  static constexpr wpk::int64 a_k = 1;
  static constexpr wpk::int64 b_k = 1;
  static constexpr wpk::int64 b_n = 1280;
  static constexpr int b_depth = 1280;
  static constexpr int a_vector = 8;
  static constexpr int b_vector = 8;
  static constexpr bool b_across = false;
};

struct Schedule {
  static constexpr int block_m = 4;
  static constexpr int thread_n = 4;
  static constexpr int threads_k = 32;
  static constexpr int threads_n = 4;
  static constexpr int depth = 2;
  static constexpr int prefetch = 1;
  static constexpr int split = 1;
  static constexpr int early = 0;
  static constexpr int shared_bytes = 256;

  static_assert(depth * thread_n * (1 + prefetch) <= 16, "a thread has at most 16 vectors of b in flight");
  static_assert(block_m >= 1 && (block_m & (block_m - 1)) == 0, "block_m is a power of two");
  static_assert(thread_n >= 1 && (thread_n & (thread_n - 1)) == 0, "thread_n is a power of two");
  static_assert(threads_k >= 1 && (threads_k & (threads_k - 1)) == 0, "threads_k is a power of two");
  static_assert(threads_n >= 1 && (threads_n & (threads_n - 1)) == 0, "threads_n is a power of two");
  static_assert(depth >= 1 && (depth & (depth - 1)) == 0, "depth is a power of two");
  static_assert(depth * (1 + prefetch) <= 16, "a thread has at most 16 vectors of b in flight");
  static_assert(32 <= threads_n * threads_k && threads_n * threads_k <= 1024, "a block has 32 to 1024 threads");
  static_assert(threads_n * threads_k % 32 == 0, "a block has whole warps");
  static_assert(block_m * thread_n <= 64, "a thread has at most 64 sums");
  static_assert(block_m * thread_n <= 4 * threads_k, "a thread stores at most 4 elements");
  static_assert(split == 1 || split <= wpk::ceilDivide(1280, threads_k * depth * 8), "every part of the reduction has a step");
  static_assert(split <= 65535, "a grid holds at most 65535 parts");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(128) wpk_gemm_skinny(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::gemmSkinny<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_gemm_skinny)
