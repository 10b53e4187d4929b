#include <wpk/schedules/elementwise_tiled.cuh>

namespace {
struct Problem {
  using Operands = wpk::Tensors<wpk::Crossing<wpk::Tensor<float, 16, 200704, 0, 0, 3136, 1>>>;
  using Y = wpk::Tensor<wpk::Half, 16, 200704, 0, 0, 64, 1>;
  using Expression = wpk::Operand<0>;
  static constexpr bool isCopy = true;
  static constexpr int d1 = 1;
  static constexpr int d2 = 1;
  static constexpr int column = 3136;
  static constexpr int row = 64;
  static constexpr int rowPadding = 0;
  static constexpr bool wide = true;
};

struct Schedule {
  static constexpr int vector = 1;
  static constexpr int tile = 32;
  static constexpr int threads = 256;
  static constexpr int early = 1;

  static_assert(tile * tile % (vector * threads) == 0, "threads divide the vectors of a tile");
  static_assert(tile * (tile * 4 + 4) <= 49152, "tiles take at most 49152 bytes, which a kernel may declare");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(256) wpk_elementwise_tiled(const void* x0, int n, void* y) {
  wpk::elementwiseTiled<Problem, Schedule>({{x0}}, n, y);
}
WPK_EXPORT(wpk_elementwise_tiled)
