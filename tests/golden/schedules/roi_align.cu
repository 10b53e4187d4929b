#include <wpk/schedules/roi_align.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 217600, 4352, 64, 1>;
  using Rois = wpk::Tensor<float, 16, 4, 1>;
  using ImageOf = wpk::Tensor<wpk::int64, 8, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 3136, 448, 64, 1>;
  using Operands = wpk::Tensors<wpk::Tensor<float, 16, 0, 0, 0, 1>>;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  static constexpr bool isMax = false;
  static constexpr bool halfPixel = true;
  static constexpr int sampling = 1;
  static constexpr int scale = 1048576000;
  static constexpr int images = 2;
  static constexpr int h = 50;
  static constexpr int w = 68;
  static constexpr int channels = 64;
  static constexpr int p = 7;
  static constexpr int q = 7;
  static constexpr int paddingC = 0;
  static constexpr int paddingQ = 0;
  static constexpr bool channelsFastest = true;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_roi_align(const void* x0, const void* x1, const void* x2, const void* x3, int n, void* y) {
  wpk::roiAlign<Problem, Schedule>({{x0, x1, x2, x3}}, n, y);
}
WPK_EXPORT(wpk_roi_align)
