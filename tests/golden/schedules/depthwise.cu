#include <wpk/schedules/depthwise.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 75264, 2688, 96, 1>;
  using Weight = wpk::Tensor<wpk::Half, 16, 288, 96, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 18816, 1344, 96, 1>;
  using Operands = wpk::Tensors<wpk::Tensor<float, 16, 0, 0, 0, 1>>;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  static constexpr int h = 28;
  static constexpr int w = 28;
  static constexpr int strideH = 2;
  static constexpr int strideW = 2;
  static constexpr int dilationH = 1;
  static constexpr int dilationW = 1;
  static constexpr int padTop = 1;
  static constexpr int padLeft = 1;
  static constexpr int channels = 96;
  static constexpr int p = 14;
  static constexpr int q = 14;
  static constexpr int paddingC = 0;
  static constexpr int paddingQ = 0;
  static constexpr bool channelsFastest = true;
  static constexpr int operand_constants = 0;
  static constexpr bool transposed = false;
  static constexpr int multiplier = 1;
  static constexpr int filterH = 3;
  static constexpr int filterW = 3;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int pixels = 4;
  static constexpr int threads = 128;
  static constexpr int early = 1;
  static constexpr int rows = 1;

  static_assert(vector * (pixels + 3) <= 160, "a thread holds at most 160 sums and weights");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(128) wpk_depthwise(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::depthwise<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_depthwise)
