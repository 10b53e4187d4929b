#include <wpk/schedules/conv_simt.cuh>

namespace {
struct Problem {
  using W = float;
  static constexpr int c = 64;
  static constexpr int k = 64;
  static constexpr int p = 56;
  static constexpr int q = 56;
  static constexpr int filter_h = 3;
  static constexpr int filter_w = 3;
  static constexpr int stride_h = 1;
  static constexpr int stride_w = 1;
  static constexpr int pad_h = 1;
  static constexpr int pad_w = 1;
  using Y = wpk::Strided<float, 4, 200704, 3584, 64, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>, wpk::Strided<float, 4, 200704, 3584, 64, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Add<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>>;
  static constexpr int y_padding = 0;
  static constexpr int dilation_h = 1;
  static constexpr int dilation_w = 1;
  using X = float;
  static constexpr wpk::int64 x_n = 200704;
  static constexpr wpk::int64 x_c = 1;
  static constexpr wpk::int64 x_h = 3584;
  static constexpr wpk::int64 x_w = 64;
  static constexpr int x_vector = 4;
  static constexpr int h = 56;
  static constexpr int w = 56;
  static constexpr int groups = 1;
  static constexpr bool transposed = false;
  static constexpr int tap = 64;
  static constexpr int depth = 576;
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
  static_assert(split == 1 || split <= wpk::ceilDivide(576, block_k), "every part of the reduction has a step");
  static_assert(split <= 65535, "a grid holds at most 65535 parts");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(128) wpk_conv_simt(const void* x0, const void* x1, const void* x2, const void* x3, int n, void* y) {
  wpk::convSimt<Problem, Schedule>({{x0, x1, x2, x3}}, n, y);
}
WPK_EXPORT(wpk_conv_simt)
