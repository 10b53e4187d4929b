#include <wpk/schedules/latest_write.cuh>

namespace {
struct Problem {
  using Data = wpk::Tensor<wpk::Half, 16, 0, 0, 0, 0>;
  using Index = wpk::Tensor<wpk::int64, 8, 50176, 784, 1, 1>;
  using Updates = wpk::Tensor<wpk::Half, 16, 50176, 784, 1, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 200704, 3136, 1, 1>;
  using Picked = wpk::PickedAxes<wpk::PickedAxis<3136, 1>>;
  static constexpr wpk::int64 indexStep = 0;
  static constexpr auto advance = wpk::Advance::none;
  static constexpr int other = 64;
  static constexpr int size = 3136;
  static constexpr int count = 784;
  static constexpr int inner = 1;
  static constexpr int rowPadding = 0;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int places = 1024;
  static constexpr int vector = 1;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(places * 4 <= 49152, "numbers take at most 49152 bytes, which a kernel may declare");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_latest_write(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::latestWrite<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_latest_write)
