#include <wpk/schedules/determinant.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<float, 4, 2048, 0, 0, 16>;
  using Y = wpk::Tensor<float, 16, 128, 0, 0, 1>;
  static constexpr int o1 = 1;
  static constexpr int o2 = 1;
  static constexpr int o3 = 128;
  static constexpr int size = 4;
  static constexpr wpk::int64 rowStride = 4;
  static constexpr wpk::int64 columnStride = 1;
  static constexpr bool rowsFastest = true;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int matrices = 8;
  static constexpr int splits = 4;
  static constexpr int early = 1;

  static_assert(matrices * splits % 32 == 0, "a block has whole warps");
  static_assert(matrices * 84 <= 49152, "matrices take at most 49152 bytes, which a kernel may declare");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(32) wpk_determinant(const void* x0, int n, void* y) {
  wpk::determinant<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_determinant)
