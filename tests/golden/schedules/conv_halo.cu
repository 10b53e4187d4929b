#include <wpk/schedules/conv_halo.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
  static constexpr int c = 64;
  static constexpr int k = 64;
  static constexpr int p = 56;
  static constexpr int q = 56;
  static constexpr int filter_h = 3;
  static constexpr int filter_w = 3;
  static constexpr int stride_h = 1;
  static constexpr int stride_w = 1;
  static constexpr int dilation_h = 1;
  static constexpr int dilation_w = 1;
  static constexpr int pad_h = 1;
  static constexpr int pad_w = 1;
  using Y = wpk::Strided<wpk::Half, 8, 200704, 3584, 64, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  static constexpr int y_padding = 0;
};

struct Schedule {
  static constexpr int tile_p = 8;
  static constexpr int tile_q = 8;
  static constexpr int block_n = 64;
  static constexpr int teams = 3;
  static constexpr int patches = 2;
  static constexpr int carry = 0;
  static constexpr int persistent = 132;
  static constexpr int early = 1;
};
}  // namespace

WPK_KERNEL(480) wpk_conv_halo(const void* x0, const void* x1, const void* x2, int n, WPK_GRID_CONSTANT const wpk::TensorMap m0, WPK_GRID_CONSTANT const wpk::TensorMap m1, void* y) {
  wpk::convHalo<Problem, Schedule>({{x0, x1, x2}}, n, {{&m0, &m1}}, y);
}
WPK_EXPORT(wpk_conv_halo)
