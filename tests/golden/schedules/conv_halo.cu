#include <wpk/schedules/conv_halo.cuh>

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
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  static constexpr int y_padding = 0;
  static constexpr int dilation_h = 1;
  static constexpr int dilation_w = 1;
  static constexpr int groups = 1;
};

struct Schedule {
  static constexpr int tile_p = 8;
  static constexpr int tile_q = 8;
  static constexpr int block_n = 64;
  static constexpr int teams = 3;
  static constexpr int patches = 2;
  static constexpr int carry = 0;
  static constexpr int persistent = 132;
  static constexpr int early = 1;
  static constexpr int shared_bytes = 209008;

  static_assert(1 <= tile_p * tile_q && tile_p * tile_q <= 256, "a tile has at most 256 pixels, those of four warpgroups");
  static_assert(4 * (tile_p * tile_q) >= 192 * wpk::ceilDivide(tile_p * tile_q, 64), "at most a quarter of the warpgroups' rows have no pixel");
  static_assert((block_n & (block_n - 1)) == 0, "columns are a power of two");
  static_assert(16 <= block_n && block_n <= 256, "a block has 16 to 256 columns");
  static_assert(1 <= teams && teams * wpk::ceilDivide(tile_p * tile_q, 64) <= 6, "a block has a team, and at most 6 warpgroups");
  static_assert(1 <= patches && patches <= 4, "a team has 1 to 4 patches");
  static_assert(wpk::maxOf((tile_p - 1) * 1 + 3, (tile_q - 1) * 1 + 3) <= 256, "a patch has at most 256 pixels along each side");
  static_assert(carry == 0 || (carry == 1 && tile_q == 8 && tile_p * tile_q % 64 == 0), "carry is 0, or 1 where a warp has two rows of eight pixels, one below the other");
  static_assert(persistent >= 0, "persistent is a number of blocks, or 0");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(480) wpk_conv_halo(const void* x0, const void* x1, const void* x2, int n, WPK_GRID_CONSTANT const wpk::TensorMap m0, WPK_GRID_CONSTANT const wpk::TensorMap m1, void* y) {
  wpk::convHalo<Problem, Schedule>({{x0, x1, x2}}, n, {{&m0, &m1}}, y);
}
WPK_EXPORT(wpk_conv_halo)
