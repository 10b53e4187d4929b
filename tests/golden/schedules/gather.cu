#include <wpk/schedules/gather.cuh>

namespace {
struct Problem {
  using Data = wpk::Tensor<wpk::Half, 16, 0, 0, 1>;
  using Index = wpk::Tensor<wpk::int64, 8, 1, 0>;
  using Y = wpk::Tensor<wpk::Half, 16, 768, 0, 1>;
  static constexpr int axisSize = 30522;
  static constexpr int axisStride = 768;
  static constexpr int other = 1;
  static constexpr int inner = 768;
  static constexpr int rowPadding = 0;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_gather(const void* x0, const void* x1, int n, void* y) {
  wpk::gather<Problem, Schedule>({{x0, x1}}, n, y);
}
WPK_EXPORT(wpk_gather)
