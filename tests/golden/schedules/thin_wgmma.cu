#include <wpk/schedules/wgmma/thin.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
  using M = wpk::Runtime;
  static constexpr int n = 288;
  static constexpr int k = 96;
  using Y = wpk::Strided<wpk::Half, 8, 0, 0, 288, 1>;
  using Operands = wpk::Tensors<wpk::Strided<wpk::Half, 8, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 1;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int y_padding = 0;
  static constexpr bool row_is_centred = true;
  static constexpr int row_epsilon = 925353388;
  using GivenMoments = wpk::Strided<float, 2, 0, 0, 6, 1>;
};

struct Schedule {
  static constexpr int warpgroups = 3;
  static constexpr int block_n = 96;
  static constexpr int row_stages = 2;
  static constexpr int persistent = 132;
  static constexpr int early = 1;
  static constexpr int ahead = 1;
  static constexpr int shared_bytes = 153704;

  static_assert(1 <= warpgroups && warpgroups <= 6, "a block has 1 to 6 warpgroups");
  static_assert((16 <= block_n && block_n <= 256) && block_n % 16 == 0, "a step has 16 to 256 columns, a multiple of 16");
  static_assert(row_stages == 1 || row_stages == 2 || row_stages == 3, "one to three tiles of rows are there at once");
  static_assert(persistent >= 0, "persistent is a number of blocks, or 0");
  static_assert(row_stages == 1 || persistent != 0, "a block with one tile has the rows of one");
  static_assert(ahead == 0 || ahead == 1, "ahead is 0 or 1");
  static_assert(ahead == 0 || (1 < wpk::ceilDivide(288, block_n) && wpk::ceilDivide(288, block_n) <= 4), "products run ahead of two to 4 steps, whose sums take turns without a loop");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(384) wpk_thin_wgmma(const void* x0, const void* x1, const void* x2, const void* x3, const void* x4, int n, WPK_GRID_CONSTANT const wpk::TensorMap m0, WPK_GRID_CONSTANT const wpk::TensorMap m1, void* y) {
  wpk::thinWgmma<Problem, Schedule>({{x0, x1, x2, x3, x4}}, n, {{&m0, &m1}}, y);
}
WPK_EXPORT(wpk_thin_wgmma)
