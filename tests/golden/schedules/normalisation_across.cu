#include <wpk/schedules/normalisation_across.cuh>

namespace {
struct Problem {
  using Inputs = wpk::Tensors<wpk::Tensor<wpk::Half, 2, 0, 0, 3199, 1>>;
  using Y = wpk::Tensor<wpk::Half, 16, 0, 0, 512, 1>;
  using Operands = wpk::Tensors<wpk::Tensor<float, 16, 0, 0, 0, 1>, wpk::Tensor<float, 16, 0, 0, 0, 1>>;
  using Prologue = wpk::Operand<0>;
  using Epilogue = wpk::Add<wpk::Mul<wpk::Acc, wpk::Operand<0>>, wpk::Operand<1>>;
  static constexpr auto kind = wpk::NormKind::layer;
  static constexpr int o1 = 1;
  static constexpr int columns = 3199;
  static constexpr int epsilon = 925353388;
  static constexpr bool wide = false;
  static constexpr int rows = 512;
  static constexpr bool readAlongColumns = true;
  static constexpr bool writtenAlongColumns = false;
  static constexpr int readTogether = 1;
  static constexpr int writtenTogether = 8;
  static constexpr int padding = 0;
};

struct Schedule {
  static constexpr int rows = 16;
  static constexpr int threads = 256;
  static constexpr int blocks = 8;
  static constexpr int early = 1;
  static constexpr int shared_bytes = 27072;

  static_assert(rows == 8 || rows == 16 || rows == 32 || rows == 64, "a tile has 8, 16, 32 or 64 rows");
  static_assert(threads % 32 == 0, "a block has whole warps");
  static_assert(blocks == 1 || blocks == 2 || blocks == 4 || blocks == 8 || blocks == 16, "a tile has 1, 2, 4, 8 or 16 blocks");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_normalisation_across(const void* x0, const void* x1, const void* x2, int n, void* y) {
  wpk::normalisationAcross<Problem, Schedule>({{x0, x1, x2}}, n, y);
}
WPK_EXPORT(wpk_normalisation_across)
