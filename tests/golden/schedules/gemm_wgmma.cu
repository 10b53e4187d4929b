#include <wpk/schedules/wgmma/gemm.cuh>

namespace {
struct Problem {
  using Multiply = wpk::Bfloat16;
  using A = wpk::Bfloat16;
  using B = wpk::Bfloat16;
  using M = wpk::Runtime;
  static constexpr int batch_middle = 1;
  static constexpr int n = 768;
  static constexpr int k = 3072;
  static constexpr wpk::int64 a_outer = 0;
  static constexpr wpk::int64 a_middle = 0;
  static constexpr wpk::int64 b_outer = 0;
  static constexpr wpk::int64 b_middle = 0;
  static constexpr bool b_constant = true;
  using Y = wpk::Strided<wpk::Bfloat16, 8, 0, 0, 768, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int y_padding = 0;
  static constexpr bool b_across = false;
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

WPK_KERNEL(160) wpk_gemm_wgmma(const void* x0, const void* x1, const void* x2, int n, WPK_GRID_CONSTANT const wpk::TensorMap m0, WPK_GRID_CONSTANT const wpk::TensorMap m1, void* y, void* parts, void* counters) {
  wpk::gemmWgmma<Problem, Schedule>({{x0, x1, x2}}, n, {{&m0, &m1}}, y, {parts, counters});
}
WPK_EXPORT(wpk_gemm_wgmma)
