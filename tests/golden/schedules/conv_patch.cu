#include <wpk/schedules/conv_patch.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
  using X = float;
  static constexpr wpk::int64 x_n = 150528;
  static constexpr wpk::int64 x_c = 50176;
  static constexpr wpk::int64 x_h = 224;
  static constexpr wpk::int64 x_w = 1;
  static constexpr int x_vector = 1;
  static constexpr int c = 3;
  static constexpr int h = 224;
  static constexpr int w = 224;
  static constexpr int k = 64;
  static constexpr int p = 112;
  static constexpr int q = 112;
  static constexpr int filter_h = 7;
  static constexpr int filter_w = 7;
  static constexpr int stride_h = 2;
  static constexpr int stride_w = 2;
  static constexpr int pad_h = 3;
  static constexpr int pad_w = 3;
  using Y = wpk::Strided<wpk::Half, 8, 802816, 7168, 64, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  static constexpr int y_padding = 0;
};

struct Schedule {
  static constexpr int tile_p = 8;
  static constexpr int tile_q = 16;
  static constexpr int block_n = 64;
  static constexpr int warps_m = 4;
  static constexpr int warps_n = 1;
  static constexpr int tiles = 1;
  static constexpr int early = 1;
};
}  // namespace

WPK_KERNEL(128) wpk_conv_patch(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::convPatch<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_conv_patch)
