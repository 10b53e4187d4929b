#include <wpk/schedules/wgmma/conv.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Half;
  static constexpr int c = 256;
  static constexpr int k = 256;
  static constexpr int p = 14;
  static constexpr int q = 14;
  static constexpr int filter_h = 3;
  static constexpr int filter_w = 3;
  static constexpr int stride_h = 1;
  static constexpr int stride_w = 1;
  static constexpr int pad_h = 1;
  static constexpr int pad_w = 1;
  using Y = wpk::Strided<wpk::Half, 8, 50176, 3584, 256, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>, wpk::Strided<wpk::Half, 8, 50176, 3584, 256, 1>>;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Add<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>>;
  static constexpr int y_padding = 0;
  static constexpr int dilation_h = 1;
  static constexpr int dilation_w = 1;
  static constexpr bool x_is_matrix = false;
};

struct Schedule {
  static constexpr int block_m = 64;
  static constexpr int block_n = 64;
  static constexpr int block_k = 64;
  static constexpr int stages = 4;
  static constexpr int split = 2;
  static constexpr int cluster = 0;
  static constexpr int early = 1;
  static constexpr int share = 0;
  static constexpr int persistent = 0;
  static constexpr int shared_bytes = 65600;
};
}  // namespace

WPK_KERNEL(160) wpk_conv_wgmma(const void* x0, const void* x1, const void* x2, const void* x3, int n, WPK_GRID_CONSTANT const wpk::TensorMap m0, WPK_GRID_CONSTANT const wpk::TensorMap m1, void* y, void* parts, void* counters) {
  wpk::convWgmma<Problem, Schedule>({{x0, x1, x2, x3}}, n, {{&m0, &m1}}, y, {parts, counters});
}
WPK_EXPORT(wpk_conv_wgmma)
