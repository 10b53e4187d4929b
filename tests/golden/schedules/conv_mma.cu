#include <wpk/schedules/conv_mma.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
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
  using Y = wpk::Strided<wpk::Half, 8, 200704, 3584, 64, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>, wpk::Strided<wpk::Half, 8, 200704, 3584, 64, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Add<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>>;
  static constexpr int y_padding = 0;
  static constexpr int dilation_h = 1;
  static constexpr int dilation_w = 1;
  using X = wpk::Half;
  static constexpr wpk::int64 x_n = 200704;
  static constexpr wpk::int64 x_c = 1;
  static constexpr wpk::int64 x_h = 3584;
  static constexpr wpk::int64 x_w = 64;
  static constexpr int x_vector = 8;
  static constexpr int h = 56;
  static constexpr int w = 56;
  static constexpr int groups = 1;
  static constexpr bool transposed = false;
  static constexpr int tap = 64;
  static constexpr int depth = 576;
};

struct Schedule {
  static constexpr int block_m = 128;
  static constexpr int block_n = 64;
  static constexpr int block_k = 32;
  static constexpr int warps_m = 4;
  static constexpr int warps_n = 2;
  static constexpr int stages = 3;
  static constexpr int split = 1;
  static constexpr int early = 0;
  static constexpr int shared_bytes = 36864;

  static_assert(block_m % (16 * warps_m) == 0, "a warp has whole tiles of 16 rows");
  static_assert(block_n % (16 * warps_n) == 0, "a warp has whole pairs of tiles of 8 columns");
  static_assert((block_n & (block_n - 1)) == 0, "columns are a power of two");
  static_assert(block_k * 2 == 32 || block_k * 2 == 64 || block_k * 2 == 128, "a row of a tile is 32, 64 or 128 bytes");
  static_assert(block_m * block_n <= 128 * (32 * warps_m * warps_n), "a thread has at most 128 accumulators");
  static_assert(stages >= 2, "the ring has at least two tiles");
  static_assert(block_m * block_k * 2 <= 256 * (32 * warps_m * warps_n), "a thread copies at most 16 pieces of block_m a step");
  static_assert(32 * warps_m * warps_n * 16 % (block_k * 2) == 0, "threads copy whole rows of block_m");
  static_assert(block_n * block_k * 2 <= 256 * (32 * warps_m * warps_n), "a thread copies at most 16 pieces of block_n a step");
  static_assert(32 * warps_m * warps_n * 16 % (block_k * 2) == 0, "threads copy whole rows of block_n");
  static_assert(split == 1 || split <= wpk::ceilDivide(576, block_k), "every part of the reduction has a step");
  static_assert(split <= 65535, "a grid holds at most 65535 parts");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_conv_mma(const void* x0, const void* x1, const void* x2, const void* x3, int n, void* y) {
  wpk::convMma<Problem, Schedule>({{x0, x1, x2, x3}}, n, y);
}
WPK_EXPORT(wpk_conv_mma)
