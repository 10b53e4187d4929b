#include <wpk/schedules/pad.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 50176, 1792, 64, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 57600, 1920, 64, 1>;
  static constexpr auto mode = wpk::PadMode::constant;
  static constexpr int rowPadding = 0;
  static constexpr wpk::uint64 value = 0x3fe0000000000000ull;
  static constexpr int x1 = 28;
  static constexpr int y1 = 30;
  static constexpr int begin1 = 1;
  static constexpr int x2 = 28;
  static constexpr int y2 = 30;
  static constexpr int begin2 = 1;
  static constexpr int xRow = 64;
  static constexpr int yRow = 64;
  static constexpr int beginRow = 0;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_pad(const void* x0, int n, void* y) {
  wpk::pad<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_pad)
