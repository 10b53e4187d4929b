#include <wpk/schedules/indexed_write.cuh>

namespace {
struct Problem {
  using Data = wpk::Tensor<wpk::Half, 16, 393216, 32768, 64, 1>;
  using Index = wpk::Tensor<wpk::int64, 8, 16, 0, 1, 0>;
  using Updates = wpk::Tensor<wpk::Half, 16, 12288, 1024, 64, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 393216, 32768, 64, 1>;
  using Picked = wpk::PickedAxes<wpk::PickedAxis<512, 1>>;
  static constexpr wpk::int64 indexStep = 0;
  static constexpr auto advance = wpk::Advance::none;
  static constexpr int other = 12;
  static constexpr int size = 512;
  static constexpr int count = 16;
  static constexpr int inner = 64;
  static constexpr int rowPadding = 0;
  static constexpr bool sharesIndex = true;
  static constexpr auto kind = wpk::WriteKind::add;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_indexed_write(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::indexedWrite<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_indexed_write)
