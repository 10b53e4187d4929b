#include <wpk/schedules/gemm_simt.cuh>

namespace {
struct Problem {
  using A = float;
  using B = float;
  using M = wpk::Runtime;
  static constexpr int batch_middle = 1;
  static constexpr int n = 768;
  static constexpr int k = 768;
  static constexpr int b_depth = 768;
  static constexpr wpk::int64 a_outer = 0;
  static constexpr wpk::int64 a_middle = 0;
  static constexpr wpk::int64 a_m = 768;
  static constexpr wpk::int64 a_k = 1;
  static constexpr wpk::int64 b_outer = 0;
  static constexpr wpk::int64 b_middle = 0;
  static constexpr wpk::int64 b_k = 1;
  static constexpr wpk::int64 b_n = 768;
  static constexpr int a_vector = 4;
  static constexpr int b_vector = 4;
  static constexpr int b_vector_across = 1;
  using Y = wpk::Strided<float, 4, 0, 0, 768, 1>;
  using Operands = wpk::Tensors<wpk::Strided<float, 4, 0, 0, 0, 1>>;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int y_padding = 0;
  static constexpr bool b_constant = true;
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

WPK_KERNEL(128) wpk_gemm_simt(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::gemmSimt<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_gemm_simt)
