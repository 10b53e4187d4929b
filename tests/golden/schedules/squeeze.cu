#include <wpk/schedules/squeeze.cuh>

namespace {
struct Problem {
  using X = wpk::Tensor<wpk::Half, 16, 840, 40, 1>;
  using Y = wpk::Tensor<wpk::Half, 16, 840, 40, 1>;
  using Down = wpk::Tensor<wpk::Half, 16, 40, 1>;
  using Hidden = wpk::Tensors<wpk::Tensor<wpk::Half, 16, 0, 1>>;
  using Gates = wpk::Tensors<wpk::Tensor<wpk::Half, 16, 0, 1>>;
  using Scaled = wpk::Tensors<wpk::Tensor<wpk::Half, 16, 840, 40, 1>>;
  using MeansOf = wpk::Round<wpk::Half, wpk::Acc>;
  using HiddenOf = wpk::Relu<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  using GatesOf = wpk::Sigmoid<wpk::Add<wpk::Acc, wpk::Operand<0>>>;
  using ScaledOf = wpk::Mul<wpk::Operand<0>, wpk::Acc>;
  static constexpr bool pixelsFastest = false;
  static constexpr bool placesFastest = false;
  static constexpr int c = 37;
  static constexpr int pixels = 21;
  static constexpr int hidden = 9;
  static constexpr int k = 37;
  static constexpr int places = 21;
  static constexpr int rowPadding = 3;
};

struct Schedule {
  static constexpr int blocks = 4;
  static constexpr int threads = 64;
  static constexpr int staged = 1;
  static constexpr int by_pixels = 1;
  static constexpr int kept = 0;
  static constexpr int early = 1;
  static constexpr int shared_bytes = 4528;

  static_assert(blocks == 1 || blocks == 2 || blocks == 4 || blocks == 8 || blocks == 16, "an image has 1, 2, 4, 8 or 16 blocks");
  static_assert(threads % 32 == 0 && threads <= 1024, "a block has whole warps, 32 at most");
  static_assert(staged == 0 || staged == 1, "staged is 0 or 1");
  static_assert(by_pixels == 0 || (by_pixels == 1 && blocks > 1 && 21 > 1), "several blocks share several pixels");
  static_assert(kept == 0 || kept == 1, "kept is 0, or 1 where a pixel's channels are whole pieces of 16 bytes");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(64) wpk_squeeze(const void* x0, const void* x1, const void* x2, const void* x3, const void* x4, const void* x5, int n, void* y) {
  wpk::squeeze<Problem, Schedule>({{x0, x1, x2, x3, x4, x5}}, n, y);
}
WPK_EXPORT(wpk_squeeze)
