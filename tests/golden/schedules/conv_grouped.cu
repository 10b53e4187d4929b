#include <wpk/schedules/conv_grouped.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
  static constexpr int c = 4;
  static constexpr int k = 4;
  static constexpr int p = 56;
  static constexpr int q = 56;
  static constexpr int filter_h = 3;
  static constexpr int filter_w = 3;
  static constexpr int stride_h = 1;
  static constexpr int stride_w = 1;
  static constexpr int pad_h = 1;
  static constexpr int pad_w = 1;
  using Y = wpk::Strided<wpk::Half, 8, 401408, 7168, 128, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>, wpk::Strided<wpk::Half, 8, 401408, 7168, 128, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Add<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>>;
  static constexpr int y_padding = 0;
  static constexpr int dilation_h = 1;
  static constexpr int dilation_w = 1;
  static constexpr int groups = 32;
  static constexpr int h = 56;
  static constexpr int w = 56;
  static constexpr wpk::int64 x_n = 401408;
  static constexpr int x_h = 7168;
  static constexpr int x_w = 128;
};

struct Schedule {
  static constexpr int tile_p = 4;
  static constexpr int tile_q = 8;
  static constexpr int block_n = 32;
  static constexpr int warps_m = 2;
  static constexpr int warps_n = 1;
  static constexpr int tiles = 1;
  static constexpr int early = 1;
  static constexpr int shared_bytes = 9920;

  static_assert(tile_q % 8 == 0, "strips are of 8 columns");
  static_assert(16 * warps_m % tile_q == 0 || tile_q % (16 * warps_m) == 0, "warps have whole pairs of strips");
  static_assert(tile_p % wpk::maxOf(1, 16 * warps_m / tile_q) == 0, "strips below each other have as many rows");
  static_assert(block_n % (8 * warps_n) == 0, "a warp has whole tiles of 8 filters");
  static_assert(block_n % 8 == 0 && block_n / 4 * 4 % 8 == 0, "a block has whole bundles of groups, and whole chunks of 8 channels");
  static_assert(block_n / warps_n % 8 == 0 || 8 % (block_n / warps_n) == 0, "a warp has whole bundles of groups, or a part of one");
  static_assert(tiles >= 1, "a block has a tile");
  static_assert(block_n / warps_n / 8 * 21 <= 120, "a thread holds at most 120 words of filters and sums");
  static_assert(wpk::ceilDivide(block_n / 4 * 4, 8) <= 32 * warps_m * warps_n, "threads bring whole pixels");
  static_assert(wpk::ceilDivide(((tile_p - 1) * 1 + 3) * ((tile_q - 1) * 1 + 3), wpk::maxOf(1, 32 * warps_m * warps_n / wpk::ceilDivide(block_n / 4 * 4, 8))) <= 40, "a thread asks for at most 40 chunks of a patch");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(64) wpk_conv_grouped(const void* x0, const void* x1, const void* x2, const void* x3, int n, void* y) {
  wpk::convGrouped<Problem, Schedule>({{x0, x1, x2, x3}}, n, y);
}
WPK_EXPORT(wpk_conv_grouped)
