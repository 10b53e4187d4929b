#include <wpk/schedules/resize.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 12544, 896, 64, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 50176, 1792, 64, 1>;
  static constexpr auto coordinates = wpk::ResizeCoordinates::halfPixel;
  static constexpr auto sampling = wpk::Sampling::linear;
  static constexpr int h = 14;
  static constexpr int w = 14;
  static constexpr int ratioH = 2;
  static constexpr int ratioW = 2;
  static constexpr int scaleH = 1073741824;
  static constexpr int scaleW = 1073741824;
  static constexpr int channels = 64;
  static constexpr int p = 28;
  static constexpr int q = 28;
  static constexpr int paddingC = 0;
  static constexpr int paddingQ = 0;
  static constexpr bool channelsFastest = true;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int threads = 256;
  static constexpr int early = 1;
  static constexpr int pixels = 1;
  static constexpr int rows = 1;

  static_assert(vector * pixels * rows <= 64, "a thread computes at most 64 outputs");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_resize(const void* x0, int n, void* y) {
  wpk::resize<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_resize)
