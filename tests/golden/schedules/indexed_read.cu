#include <wpk/schedules/indexed_read.cuh>

namespace {
struct Problem {
  using Data = wpk::Tensor<wpk::Half, 16, 0, 0, 0, 1>;
  using Index = wpk::Tensor<wpk::int64, 8, 256, 0, 2, 0>;
  using Y = wpk::Tensor<wpk::Half, 16, 98304, 0, 768, 1>;
  using Picked = wpk::PickedAxes<wpk::PickedAxis<4, 38400>, wpk::PickedAxis<50, 768>>;
  static constexpr wpk::int64 indexStep = 1;
  static constexpr bool sharesIndex = true;
  static constexpr int o1 = 1;
  static constexpr int o2 = 128;
  static constexpr int row = 768;
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

WPK_KERNEL(256) wpk_indexed_read(const void* x0, const void* x1, int n, void* y) {
  wpk::indexedRead<Problem, Schedule>({{x0, x1}}, n, y);
}
WPK_EXPORT(wpk_indexed_read)
