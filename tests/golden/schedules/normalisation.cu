#include <wpk/schedules/normalisation.cuh>

namespace {
struct Problem {
  using Inputs = wpk::Tensors<wpk::Tensor<wpk::Half, 16, 98304, 0, 768, 1>, wpk::Tensor<wpk::Half, 16, 98304, 0, 768, 1>>;
  using Y = wpk::Tensor<wpk::Half, 16, 98304, 0, 768, 1>;
  using Operands = wpk::Tensors<wpk::Tensor<float, 16, 0, 0, 0, 1>, wpk::Tensor<float, 16, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 0;
  using Prologue = wpk::Add<wpk::Operand<0>, wpk::Operand<1>>;
  using Epilogue = wpk::Add<wpk::Mul<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>;
  static constexpr auto kind = wpk::NormKind::layer;
  static constexpr int o1 = 1;
  static constexpr int o2 = 128;
  static constexpr int columns = 768;
  static constexpr int rowPadding = 0;
  static constexpr int epsilon = 925353388;
  static constexpr bool wide = true;
  static constexpr int input_constants = 0;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int threads = 32;
  static constexpr int rows = 4;
  static constexpr int cached = 1;
  static constexpr int early = 1;

  static_assert(threads % 32 == 0 || (threads == 16 || threads == 8 || threads == 4), "a row belongs to whole warps, or to 4, 8 or 16 lanes of one");
  static_assert(rows == 1 || threads <= 32, "only rows of a warp or less share a block");
  static_assert(threads * rows % 32 == 0, "a block has whole warps");
  static_assert(cached == 0 || wpk::ceilDivide(768, vector * threads) * vector <= 64, "a thread keeps at most 64 values");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(128) wpk_normalisation(const void* x0, const void* x1, const void* x2, const void* x3, int n, void* y) {
  wpk::normalisation<Problem, Schedule>({{x0, x1, x2, x3}}, n, y);
}
WPK_EXPORT(wpk_normalisation)
