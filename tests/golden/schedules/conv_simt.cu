#include <wpk/schedules/conv_simt.cuh>

namespace {
struct Problem {
  using W = float;
  using X = float;
  static constexpr wpk::int64 x_n = 200704;
  static constexpr wpk::int64 x_c = 1;
  static constexpr wpk::int64 x_h = 3584;
  static constexpr wpk::int64 x_w = 64;
  static constexpr int x_vector = 4;
  static constexpr int c = 64;
  static constexpr int h = 56;
  static constexpr int w = 56;
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
  static constexpr int groups = 1;
  static constexpr bool transposed = false;
  static constexpr int tap = 64;
  static constexpr int depth = 576;
  using Y = wpk::Strided<float, 4, 200704, 3584, 64, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>, wpk::Strided<float, 4, 200704, 3584, 64, 1>>;
  using Epilogue = wpk::Relu<wpk::Add<wpk::Add<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>>;
  static constexpr int y_padding = 0;
};

struct Schedule {
  static constexpr int block_m = 64;
  static constexpr int block_n = 64;
  static constexpr int block_k = 8;
  static constexpr int thread_m = 8;
  static constexpr int thread_n = 4;
  static constexpr int row_major = 1;
  static constexpr int padding = 4;
  static constexpr int prefetch = 1;
  static constexpr int split = 1;
  static constexpr int early = 0;
};
}  // namespace

WPK_KERNEL(128) wpk_conv_simt(const void* x0, const void* x1, const void* x2, const void* x3, int n, void* y) {
  wpk::convSimt<Problem, Schedule>({{x0, x1, x2, x3}}, n, y);
}
WPK_EXPORT(wpk_conv_simt)
