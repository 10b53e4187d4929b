#include <wpk/schedules/elementwise.cuh>

namespace {
struct Problem {
  using Operands = wpk::Tensors<wpk::Tensor<wpk::Half, 16, 200704, 0, 0, 0, 1>>;
  static constexpr int operand_constants = 0;
  using Y = wpk::Tensor<wpk::Half, 16, 200704, 0, 0, 0, 1>;
  using Expression = wpk::Mul<wpk::Operand<0>, wpk::Sigmoid<wpk::Operand<0>>>;
  static constexpr bool isCopy = false;
  static constexpr int d1 = 1;
  static constexpr int d2 = 1;
  static constexpr int d3 = 1;
  static constexpr int row = 200704;
  static constexpr int rowPadding = 0;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 8;
  static constexpr int items = 1;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(vector * items * 1 <= 64, "a thread holds at most 64 elements of its 1 inputs");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_elementwise(const void* x0, int n, void* y) {
  wpk::elementwise<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_elementwise)
