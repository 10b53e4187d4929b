#include <wpk/schedules/placed_rows.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 768, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 768, 1>;
  static constexpr bool repeated = false;
  static constexpr bool spread = false;
  static constexpr int columns = 768;
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

WPK_KERNEL(256) wpk_placed_rows(const void* x0, int n, int s0, void* y) {
  wpk::placedRows<Problem, Schedule>({{x0}}, n, s0, y);
}
WPK_EXPORT(wpk_placed_rows)
