#include <wpk/schedules/top_by_rank.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<float, 16, 800, 0, 0, 1, 8>;
  using Y = wpk::Tensor<wpk::int64, 8, 16, 0, 0, 2, 1>;
  static constexpr int o1 = 1;
  static constexpr int o2 = 1;
  static constexpr int o3 = 8;
  static constexpr int size = 100;
  static constexpr bool largest = true;
  static constexpr bool last = false;
  static constexpr int count = 2;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 1;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_top_by_rank(const void* x0, int n, void* y) {
  wpk::topByRank<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_top_by_rank)
