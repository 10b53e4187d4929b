#include <wpk/schedules/conv_patch.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
  static constexpr int c = 3;
  static constexpr int k = 64;
  static constexpr int p = 112;
  static constexpr int q = 112;
  static constexpr int filter_h = 7;
  static constexpr int filter_w = 7;
  static constexpr int stride_h = 2;
  static constexpr int stride_w = 2;
  static constexpr int pad_h = 3;
  static constexpr int pad_w = 3;
  using Y = wpk::Strided<wpk::Half, 8, 802816, 7168, 64, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  static constexpr int y_padding = 0;
  using X = float;
  static constexpr wpk::int64 x_n = 150528;
  static constexpr wpk::int64 x_c = 50176;
  static constexpr wpk::int64 x_h = 224;
  static constexpr wpk::int64 x_w = 1;
  static constexpr int x_vector = 1;
  static constexpr int h = 224;
  static constexpr int w = 224;
};

struct Schedule {
  static constexpr int tile_p = 8;
  static constexpr int tile_q = 16;
  static constexpr int block_n = 64;
  static constexpr int warps_m = 4;
  static constexpr int warps_n = 1;
  static constexpr int tiles = 1;
  static constexpr int early = 1;
  static constexpr int shared_bytes = 54512;

  static_assert(tile_q % 8 == 0, "eight neighbouring pixels lie in all banks");
  static_assert(tile_p * tile_q % (16 * warps_m) == 0, "a warp has whole tiles of 16 pixels");
  static_assert(block_n % (16 * warps_n) == 0, "a warp has whole pairs of tiles of 8 filters");
  static_assert((block_n & (block_n - 1)) == 0, "filters of a block are a power of two");
  static_assert(tiles >= 1, "a block has a tile");
  static_assert(tile_p * tile_q * block_n <= 128 * (32 * warps_m * warps_n), "a thread has at most 128 accumulators");
  static_assert(wpk::ceilDivide(((tile_p - 1) * 2 + 7) * ((tile_q - 1) * 2 + 8), 32 * warps_m * warps_n) * 3 <= 64, "a thread holds at most 64 values of a patch");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(128) wpk_conv_patch(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::convPatch<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_conv_patch)
