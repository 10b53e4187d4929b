#include <wpk/schedules/gemm_mma.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Bfloat16;
  static constexpr int b_vector_across = 1;
  using A = wpk::Bfloat16;
  using B = wpk::Bfloat16;
  using M = wpk::Runtime;
  static constexpr int batch_middle = 1;
  static constexpr int n = 768;
  static constexpr int k = 768;
  static constexpr wpk::int64 a_outer = 0;
  static constexpr wpk::int64 a_middle = 0;
  static constexpr wpk::int64 b_outer = 0;
  static constexpr wpk::int64 b_middle = 0;
  static constexpr bool b_constant = true;
  using Y = wpk::Strided<wpk::Bfloat16, 8, 0, 0, 768, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int y_padding = 0;
  static constexpr wpk::int64 a_m = 768;
  static constexpr wpk::int64 a_k = 1;
  static constexpr wpk::int64 b_k = 1;
  static constexpr wpk::int64 b_n = 768;
  static constexpr int b_depth = 768;
  static constexpr int a_vector = 8;
  static constexpr int b_vector = 8;
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
  static_assert(split == 1 || split <= wpk::ceilDivide(768, block_k), "every part of the reduction has a step");
  static_assert(split <= 65535, "a grid holds at most 65535 parts");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_gemm_mma(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::gemmMma<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_gemm_mma)
