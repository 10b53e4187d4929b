#include <wpk/schedules/arg_reduction.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<float, 16, 50260, 0, 0, 0, 1>;
  using Y = wpk::Tensor<wpk::int64, 8, 1, 0, 0, 0>;
  static constexpr int o1 = 1;
  static constexpr int o2 = 1;
  static constexpr int o3 = 1;
  static constexpr int size = 50257;
  static constexpr bool largest = true;
  static constexpr bool last = false;
  static constexpr bool alongRow = true;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int outputs = 8;
  static constexpr int splits = 32;
  static constexpr int early = 1;

  static_assert((outputs & (outputs - 1)) == 0, "rows of a block are a power of two");
  static_assert((splits & (splits - 1)) == 0, "threads of a row are a power of two");
  static_assert(outputs * splits % 32 == 0, "a block has whole warps");
  static_assert(outputs * splits * 8 <= 49152, "shares take at most 49152 bytes, which a kernel may declare");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_arg_reduction(const void* x0, int n, void* y) {
  wpk::argReduction<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_arg_reduction)
