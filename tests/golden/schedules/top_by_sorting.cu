#include <wpk/schedules/top_by_sorting.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 8400, 0, 0, 0, 1>;
  using Y = wpk::Tensor<wpk::int64, 8, 300, 0, 0, 0, 1>;
  static constexpr int o1 = 1;
  static constexpr int o2 = 1;
  static constexpr int o3 = 1;
  static constexpr int size = 8400;
  static constexpr bool largest = false;
  static constexpr bool last = false;
  static constexpr int count = 300;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int kept = 512;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert((kept & (kept - 1)) == 0, "what is kept is a power of two");
  static_assert(kept >= 300, "300 elements are asked for");
  static_assert(2 * kept * 8 <= 49152, "both halves take at most 49152 bytes, which a kernel may declare");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_top_by_sorting(const void* x0, int n, void* y) {
  wpk::topBySorting<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_top_by_sorting)
