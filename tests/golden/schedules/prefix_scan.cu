#include <wpk/schedules/prefix_scan.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 8192, 0, 0, 512, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 8192, 0, 0, 512, 1>;
  static constexpr int o1 = 1;
  static constexpr int o2 = 1;
  static constexpr int o3 = 16;
  static constexpr int size = 512;
  static constexpr auto kind = wpk::ScanKind::sum;
  static constexpr bool exclusive = false;
  static constexpr bool reverse = false;
  static constexpr bool alongRow = true;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int rows = 8;
  static constexpr int splits = 32;
  static constexpr int early = 1;

  static_assert((rows & (rows - 1)) == 0, "rows of a block are a power of two");
  static_assert((splits & (splits - 1)) == 0, "threads of a row are a power of two");
  static_assert(rows * splits % 32 == 0, "a block has whole warps");
  static_assert(rows * splits * 4 <= 49152, "values take at most 49152 bytes, which a kernel may declare");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_prefix_scan(const void* x0, int n, void* y) {
  wpk::prefixScan<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_prefix_scan)
