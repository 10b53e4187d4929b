#include <wpk/schedules/depthwise_rows.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 301056, 5376, 96, 1>;
  using Weight = wpk::Tensor<wpk::Half, 16, 672, 96, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 301056, 5376, 96, 1>;
  using Operands = wpk::Tensors<wpk::Tensor<float, 16, 0, 0, 0, 1>>;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int h = 56;
  static constexpr int w = 56;
  static constexpr int strideH = 1;
  static constexpr int strideW = 1;
  static constexpr int dilationH = 1;
  static constexpr int dilationW = 1;
  static constexpr int padTop = 3;
  static constexpr int padLeft = 3;
  static constexpr int channels = 96;
  static constexpr int p = 56;
  static constexpr int q = 56;
  static constexpr int paddingC = 0;
  static constexpr int paddingQ = 0;
  static constexpr bool channelsFastest = true;
  static constexpr int operand_constants = 0;
  static constexpr bool transposed = false;
  static constexpr int multiplier = 1;
  static constexpr int filterH = 7;
  static constexpr int filterW = 7;
  static constexpr bool wide = false;
};

struct Schedule {
  static constexpr int vector = 2;
  static constexpr int pixels = 8;
  static constexpr int rows = 14;
  static constexpr int lanes = 16;
  static constexpr int threads = 128;
  static constexpr int early = 1;
  static constexpr int shared_bytes = 6272;

  static_assert(7 * pixels * vector <= 128, "a thread holds at most 128 sums");
  static_assert(threads % 32 == 0, "a block has whole warps");
  static_assert(threads % lanes == 0, "a block's threads have whole runs of channels");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(128) wpk_depthwise_rows(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::depthwiseRows<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_depthwise_rows)
