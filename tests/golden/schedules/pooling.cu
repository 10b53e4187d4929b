#include <wpk/schedules/pooling.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 50176, 1792, 64, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 12544, 896, 64, 1>;
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
  static constexpr int channels = 64;
  static constexpr int p = 14;
  static constexpr int q = 14;
  static constexpr int paddingC = 0;
  static constexpr int paddingQ = 0;
  static constexpr bool channelsFastest = true;
  static constexpr bool findsPlaces = false;
  static constexpr bool isMax = false;
  static constexpr bool countIncludePad = false;
  static constexpr int windowH = 3;
  static constexpr int windowW = 3;
  static constexpr int padBottom = 1;
  static constexpr int padRight = 1;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_pooling(const void* x0, const void* x1, int n, void* y) {
  wpk::pooling<Problem, Schedule>({{x0, x1}}, n, y);
}
WPK_EXPORT(wpk_pooling)
