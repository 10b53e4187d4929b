#include <wpk/schedules/gemm_simt.cuh>

namespace {
struct Problem {
  using A = float;
  using B = float;
  using M = wpk::Runtime;
  static constexpr int batch_middle = 1;
  static constexpr int n = 768;
  static constexpr int k = 768;
  static constexpr wpk::int64 a_outer = 0;
  static constexpr wpk::int64 a_middle = 0;
  static constexpr wpk::int64 b_outer = 0;
  static constexpr wpk::int64 b_middle = 0;
  static constexpr bool b_constant = true;
  using Y = wpk::Strided<float, 4, 0, 0, 768, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int y_padding = 0;
  static constexpr wpk::int64 a_m = 768;
  static constexpr wpk::int64 a_k = 1;
  static constexpr wpk::int64 b_k = 1;
  static constexpr wpk::int64 b_n = 768;
  static constexpr int b_depth = 768;
  static constexpr int a_vector = 4;
  static constexpr int b_vector = 4;
};

struct Schedule {
  static constexpr int block_m = 64;
  static constexpr int block_n = 64;
  static constexpr int block_k = 8;
  static constexpr int thread_m = 8;
  static constexpr int thread_n = 4;
  static constexpr int row_major = 1;
  static constexpr int padding = 4;
  static constexpr int prefetch = 1;
  static constexpr int split = 1;
  static constexpr int early = 0;
  static constexpr int shared_bytes = 10496;

  static_assert(block_m % thread_m == 0 && block_n % thread_n == 0, "threads tile the block");
  static_assert(32 <= block_m / thread_m * (block_n / thread_n) && block_m / thread_m * (block_n / thread_n) <= 1024, "a block has 32 to 1024 threads");
  static_assert(block_m / thread_m * (block_n / thread_n) % 32 == 0, "a block has whole warps");
  static_assert(block_n / thread_n % wpk::minOf(block_n / thread_n, 8) == 0 && block_m / thread_m % (32 / wpk::minOf(block_n / thread_n, 8)) == 0, "warps of 8 columns of threads (or all, if fewer) tile the block");
  static_assert(32 % wpk::minOf(block_n / thread_n, 8) == 0, "a warp has a power of two of columns of threads");
  static_assert(thread_m < 3 || thread_m % 4 == 0, "thread_m is 1, 2 or a multiple of 4");
  static_assert(thread_n < 3 || thread_n % 4 == 0, "thread_n is 1, 2 or a multiple of 4");
  static_assert(thread_m * thread_n <= 64, "a thread has at most 64 accumulators");
  static_assert(block_k == 4 || block_k % 8 == 0, "a step is 4 elements, or a multiple of 8");
  static_assert(padding % 4 == 0, "lines stay aligned to 16 bytes");
  static_assert(wpk::ceilDivide(block_m * block_k, 4 * (block_m / thread_m * (block_n / thread_n))) * 16 <= 128, "a thread loads at most 128 bytes of block_m a step");
  static_assert(wpk::ceilDivide(block_n * block_k, 4 * (block_m / thread_m * (block_n / thread_n))) * 16 <= 128, "a thread loads at most 128 bytes of block_n a step");
  static_assert(split == 1 || split <= wpk::ceilDivide(768, block_k), "every part of the reduction has a step");
  static_assert(split <= 65535, "a grid holds at most 65535 parts");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(128) wpk_gemm_simt(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::gemmSimt<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_gemm_simt)
