#include <wpk/schedules/wgmma/feed_forward.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
  using M = wpk::Runtime;
  static constexpr int k = 96;
  static constexpr int hidden = 384;
  static constexpr int n = 96;
  using HiddenOperands = wpk::Tensors<wpk::Strided<wpk::Half, 8, 0, 0, 0, 1>>;
  using HiddenEpilogue = wpk::Mul<wpk::Mul<wpk::Scalar<0x3f000000u>, wpk::Add<wpk::Acc, wpk::Operand<0>>>, wpk::Add<wpk::Scalar<0x3f800000u>, wpk::Erf<wpk::Mul<wpk::Add<wpk::Acc, wpk::Operand<0>>, wpk::Scalar<0x3f3504f3u>>>>>;
  static constexpr bool row_is_centred = true;
  static constexpr int row_epsilon = 925353388;
  using Y = wpk::Strided<wpk::Half, 8, 0, 0, 96, 1>;
  using Operands = wpk::Tensors<wpk::Strided<wpk::Half, 8, 0, 0, 0, 1>, wpk::Strided<wpk::Half, 8, 0, 0, 96, 1>>;
  using Epilogue = wpk::Add<wpk::Add<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>;
  static constexpr int y_padding = 0;
  static constexpr int consumer_registers = 160;
};

struct Schedule {
  static constexpr int warpgroups = 3;
  static constexpr int block_n = 64;
  static constexpr int stages = 6;
  static constexpr int row_stages = 1;
  static constexpr int persistent = 132;
  static constexpr int early = 1;
  static constexpr int pingpong = 0;
  static constexpr int shared_bytes = 215280;

  static_assert(1 <= warpgroups && warpgroups <= 3, "a block has 1 to 3 consumers");
  static_assert((0 < block_n && block_n <= 256) && block_n % 16 == 0, "a step has whole slices of 16 hidden columns, at most 256");
  static_assert(1 <= stages && stages <= wpk::minOf(64, wpk::ceilDivide(384, block_n)), "the pipelines have no more stages than there are steps, 64 at most");
  static_assert(row_stages == 1 || row_stages == 2, "one or two tiles of rows are there at once");
  static_assert(persistent >= 0, "persistent is a number of blocks, or 0");
  static_assert(row_stages == 1 || persistent != 0, "a block with one tile has the rows of one");
  static_assert(pingpong == 0 || pingpong == 1, "pingpong is 0 or 1");
  static_assert(pingpong == 0 || warpgroups > 1, "one warpgroup takes no turns");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(512, 1) wpk_feed_forward_wgmma(const void* x0, const void* x1, const void* x2, const void* x3, const void* x4, const void* x5, const void* x6, int n, WPK_GRID_CONSTANT const wpk::TensorMap m0, WPK_GRID_CONSTANT const wpk::TensorMap m1, WPK_GRID_CONSTANT const wpk::TensorMap m2, void* y) {
  wpk::feedForwardWgmma<Problem, Schedule>({{x0, x1, x2, x3, x4, x5, x6}}, n, {{&m0, &m1, &m2}}, y);
}
WPK_EXPORT(wpk_feed_forward_wgmma)
