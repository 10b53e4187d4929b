#include <wpk/schedules/reduction.cuh>

namespace {
struct Problem {
  using Inputs = wpk::Tensors<wpk::Tensor<wpk::Half, 16, 25088, 0, 0, 0, 3584, 512, 1>>;
  using Y = wpk::Tensor<wpk::Half, 16, 512, 0, 0, 1>;
  using Operands = wpk::Tensors<>;
  static constexpr int operand_constants = 0;
  using Prologue = wpk::Operand<0>;
  using Epilogue = wpk::Acc;
  static constexpr auto kind = wpk::ReduceKind::mean;
  static constexpr bool alongOuter = true;
  static constexpr int o1 = 1;
  static constexpr int o2 = 1;
  static constexpr int row = 512;
  static constexpr int i1 = 1;
  static constexpr int i2 = 7;
  static constexpr int i3 = 7;
  static constexpr int rowPadding = 0;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int outputs = 32;
  static constexpr int splits = 8;
  static constexpr int early = 1;

  static_assert((outputs & (outputs - 1)) == 0, "outputs of a block are a power of two");
  static_assert((splits & (splits - 1)) == 0, "threads of an output are a power of two");
  static_assert(outputs * splits % 32 == 0, "a block has whole warps");
  static_assert(outputs * splits * vector * 4 <= 49152, "shares take at most 49152 bytes, which a kernel may declare");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_reduction(const void* x0, int n, void* y) {
  wpk::reduction<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_reduction)
