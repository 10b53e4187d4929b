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
  static constexpr int operand_constants = 0;
  using Epilogue = wpk::Add<wpk::Acc, wpk::Operand<0>>;
  static constexpr int y_padding = 0;
  static constexpr bool b_across = false;
  static constexpr int consumer_registers = 0;
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
  static constexpr int pingpong = 0;
  static constexpr int shared_by = 2;
  static constexpr int residual = 0;
  static constexpr int shared_bytes = 65600;

  static_assert(16 <= block_n && block_n <= 256, "a block has 16 to 256 columns");
  static_assert(block_n % 16 == 0, "columns are a multiple of 16");
  static_assert(block_m == 64 || block_m == 128 || block_m == 192, "one to three consumer warpgroups have 64 rows each");
  static_assert(stages >= 2, "the pipeline has at least two stages");
  static_assert(split == 1 || block_n <= 128, "tiles of split-K have at most 128 columns: sums of more would spill");
  static_assert(cluster == 0 || cluster == 1, "cluster is 0 or 1");
  static_assert(cluster == 0 || (2 <= split && split <= 8), "a cluster has two to 8 blocks");
  static_assert(share == 0 || share == 1 || share == 2, "share is 0 (no multicast), 1 (of A) or 2 (of B)");
  static_assert(shared_by == 2 || shared_by == 4, "tiles are multicast to two or four blocks");
  static_assert(share != 0 || shared_by == 2, "shared_by is 2 where nothing is multicast");
  static_assert(share != 2 || block_n % (8 * shared_by) == 0, "parts of a tile of B are whole patterns of the swizzle, 8 columns");
  static_assert(cluster == 0 || share == 0 || split * shared_by <= 8, "blocks that multicast and split are a cluster of at most 8");
  static_assert(persistent % shared_by == 0 || share == 0, "persistent blocks that multicast are whole clusters");
  static_assert(persistent >= 0, "persistent is a number of blocks, or 0");
  static_assert(persistent == 0 || split == 1, "persistent blocks have whole reductions");
  static_assert(pingpong == 0 || pingpong == 1, "pingpong is 0 or 1");
  static_assert(pingpong == 0 || persistent != 0, "warpgroups take turns in persistent blocks");
  static_assert(block_m <= 128 || block_n <= 64 || split == 1 || cluster == 1, "parts that meet in global memory spill where three warpgroups have more than 64 columns");
  static_assert(pingpong == 0 || block_m <= 128, "of warpgroups that take turns each has one or two times 64 rows");
  static_assert(pingpong == 0 || block_m * block_n <= 16384, "a warpgroup that has a tile of its own has 16384 sums at most");
  static_assert(block_k == 64 || block_k == 128 || block_k == 192 || block_k == 256, "a tile is one to four boxes of 64 elements a row");
  static_assert(stages * block_k <= 1024, "the pipeline has at most 16 boxes");
  static_assert(split == 1 || split <= wpk::ceilDivide(3072, block_k), "every part of the reduction has a step");
  static_assert(split <= 65535, "a grid holds at most 65535 parts");
  static_assert(residual == 0, "no operand of the epilogue can be brought by tensor copies");
  static_assert(stages == 2 || persistent != 0 || stages <= wpk::ceilDivide(wpk::ceilDivide(3072, block_k), split), "the pipeline has no more stages than a block has steps");
  static_assert(early == 0 || early == 1, "early is 0 or 1");
};
}  // namespace

WPK_KERNEL(160) wpk_gemm_wgmma(const void* x0, const void* x1, const void* x2, int n, WPK_GRID_CONSTANT const wpk::TensorMap m0, WPK_GRID_CONSTANT const wpk::TensorMap m1, void* y, void* parts, void* counters) {
  wpk::gemmWgmma<Problem, Schedule>({{x0, x1, x2}}, n, {{&m0, &m1}}, y, {parts, counters});
}
WPK_EXPORT(wpk_gemm_wgmma)
