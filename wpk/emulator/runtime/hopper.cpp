// What sm_90 adds: barriers in shared memory that count bytes, tensor copies, and asynchronous products.
#include <cstring>

#include <wpk/kernels/tma.cuh>

#include "state.h"
#include "tile_product.h"

using namespace wpk;
using namespace wpk::emulator;
using namespace wpk::emulated;

namespace {

// The eight bytes of a barrier. A phase ends when no arrival and no byte is outstanding.
struct Barrier {
  int32_t bytes;      // announced and not landed
  uint16_t pending;   // arrivals still to come
  uint16_t count : 15;
  uint16_t phase : 1;
};
static_assert(sizeof(Barrier) == 8);

Barrier& barrierAt(unsigned long address) {
  uint32 offset;
  if (address % 8 != 0) fail("a barrier at %p is not 8-byte aligned", reinterpret_cast<void*>(address));
  if (!findShared(address, 8, &offset)) fail("a barrier at %p is not in shared memory", reinterpret_cast<void*>(address));
  return *reinterpret_cast<Barrier*>(address);
}

void completePhase(Barrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  barrier.pending = barrier.count;
  barrier.phase ^= 1;
  worker->progress++;
}

// Copies one row of the box, `bytes` long, into swizzled shared memory; zero where the tensor ends.
void landRow(const TensorMap& map, const char* row, int64 column, unsigned long offset, int bytes) {
  const unsigned long mask = map.swizzle == 0 ? 0 : static_cast<unsigned long>(map.swizzle / 16 - 1);
  for (int chunk = 0; chunk < bytes; chunk += 16) {
    unsigned long place = offset + static_cast<unsigned long>(chunk);
    place ^= (place >> 7 & mask) << 4;
    char* const target = worker->block.shared + place;
    memset(target, 0, 16);
    for (int byte = 0; byte < 16 && row != nullptr; byte += map.elementBytes) {
      const int64 at = column + (chunk + byte) / map.elementBytes;
      if (at < 0 || at >= map.extents[0]) continue;
      memcpy(target + byte, row + at * map.elementBytes, static_cast<size_t>(map.elementBytes));
    }
  }
}

int boxRows(const TensorMap& map) {
  int rows = 1;
  for (int d = 1; d < map.rank; ++d) rows *= map.box[d];
  return rows;
}

void land(const TensorCopy& copy) {
  const TensorMap& map = *static_cast<const TensorMap*>(copy.map);
  const int bytes = map.box[0] * map.elementBytes, rows = boxRows(map);
  const unsigned long start = copy.target - reinterpret_cast<unsigned long>(worker->block.shared);
  for (int row = 0; row < rows; ++row) {
    const char* source = static_cast<const char*>(map.base);
    int rest = row;
    for (int d = 1; d < map.rank; ++d) {
      const int64 at = copy.coordinates[d] + rest % map.box[d];
      rest /= map.box[d];
      if (at < 0 || at >= map.extents[d]) source = nullptr;
      if (source != nullptr) source += at * map.strides[d - 1];
    }
    landRow(map, source, copy.coordinates[0], start + static_cast<unsigned long>(row) * bytes, bytes);
  }
  Barrier& barrier = barrierAt(copy.barrier);
  barrier.bytes -= bytes * rows;
  completePhase(barrier);
  worker->progress++;
}

void checkTensorCopy(const TensorCopy& copy) {
  const TensorMap& map = *static_cast<const TensorMap*>(copy.map);
  const int bytes = map.box[0] * map.elementBytes;
  const unsigned long alignment = map.swizzle == 0 ? 128 : static_cast<unsigned long>(map.swizzle) * 8;
  uint32 offset;
  if (map.rank != copy.rank) fail("copyTensor: %d coordinates for a map of rank %d", copy.rank, map.rank);
  if (bytes % 16 != 0 || (map.swizzle != 0 && bytes > map.swizzle)) {
    fail("copyTensor: rows of %d bytes with a swizzle of %d", bytes, map.swizzle);
  }
  if (!findShared(copy.target, static_cast<size_t>(bytes * boxRows(map)), &offset)) {
    fail("copyTensor: the target is not in dynamic shared memory");
  }
  if (offset % alignment != 0) fail("copyTensor: the target is not aligned to %lu bytes", alignment);
}

}  // namespace

namespace wpk::emulator {

bool landTensorCopy() {
  Worker& self = *worker;
  if (self.tensorCopies.empty()) return false;
  const size_t chosen = self.draw() % self.tensorCopies.size();
  const TensorCopy copy = self.tensorCopies[chosen];
  self.tensorCopies.erase(self.tensorCopies.begin() + static_cast<long>(chosen));
  land(copy);
  return true;
}

namespace {

constexpr uint64 kSwizzle128 = 1;  // layout field of a descriptor

// 16 bytes of a K-major tile with 128-byte swizzle: row `row`, bytes 16 * half onwards from the start.
const uint16* descriptorRow(uint64 descriptor, int row, int half) {
  const uint32 start = static_cast<uint32>(descriptor & 0x3fff) << 4;
  const uint32 groupStride = static_cast<uint32>(descriptor >> 32 & 0x3fff) << 4;
  uint32 place = start + static_cast<uint32>(row >> 3) * groupStride + static_cast<uint32>(row & 7) * 128 +
                 static_cast<uint32>(half) * 16;
  place ^= (place >> 7 & 7) << 4;
  if (place + 16 > worker->block.sharedBytes) fail("wgmma: a descriptor reaches behind the shared memory");
  return reinterpret_cast<const uint16*>(worker->block.shared + place);
}

// The 16 rows of a warpgroup's 64 x N tile that belong to this warp.
template <MmaType T>
void multiplyWarp(uint32 warp, const WgmmaPending& pending) {
  Worker& self = *worker;
  const WgmmaOperands& operands = pending.operands;
  const int columns = static_cast<int>(operands.columns);
  for (int row = 0; row < 16; ++row) {
    for (int half = 0; half < 2; ++half) {
      widen8<T>(descriptorRow(operands.a, static_cast<int>(warp & 3) * 16 + row, half), &self.a[0][row][half * 8]);
    }
  }
  for (int column = 0; column < columns; column += 8) {
    for (int half = 0; half < 2; ++half) {
      alignas(64) float transposed[8][8];
      for (int i = 0; i < 8; ++i) widen8<T>(descriptorRow(operands.b, column + i, half), transposed[i]);
      transpose8(transposed[0], &self.b[column / 16][half * 8][column & 8], 16);
    }
  }
  for (int column = 0; column < columns; column += 16) {
    float* piece[32];
    for (int lane = 0; lane < 32; ++lane) piece[lane] = pending.accumulators[lane] + column / 2;
    multiplyPair<16>(self.a[0], self.b[column / 16], piece, column + 8 < columns, operands.accumulate == 0);
  }
}

void multiply(uint32 warp, const WgmmaPending& pending) {
  if (pending.operands.type == MmaType::half) return multiplyWarp<MmaType::half>(warp, pending);
  return multiplyWarp<MmaType::bfloat16>(warp, pending);
}

}  // namespace

void runWgmma(Warp& warp, uint32 mask) {
  if (mask != ~0u) fail("wgmma: only lanes %08x take part", mask);
  WgmmaPending pending{{}, *static_cast<WgmmaOperands*>(warp.fibers[0].operands)};
  const WgmmaOperands& first = pending.operands;
  if (first.a >> 62 != kSwizzle128 || first.b >> 62 != kSwizzle128) {
    fail("wgmma: only descriptors with 128-byte swizzle are emulated");
  }
  for (int lane = 0; lane < 32; ++lane) {
    const auto& other = *static_cast<WgmmaOperands*>(warp.fibers[lane].operands);
    pending.accumulators[lane] = other.accumulators;
    if (other.a != first.a || other.b != first.b || other.accumulate != first.accumulate) {
      fail("wgmma: the lanes of one warp bring different descriptors");
    }
  }
  if (worker->has(kLateCopies)) {
    warp.wgmmas.push_back(pending);
  } else {
    multiply(warp.index, pending);
  }
}

void runWgmmaCommit(Warp& warp, uint32) { warp.wgmmaGroups.push_back(warp.wgmmas.size()); }

void runWgmmaWait(Warp& warp, uint32) {
  const size_t keep = *static_cast<const uint32*>(warp.fibers[0].operands);
  if (warp.wgmmaGroups.size() <= keep) return;
  const size_t done = warp.wgmmaGroups.size() - keep, end = warp.wgmmaGroups[done - 1];
  for (size_t i = 0; i < end; ++i) multiply(warp.index, warp.wgmmas[i]);
  warp.wgmmas.erase(warp.wgmmas.begin(), warp.wgmmas.begin() + static_cast<long>(end));
  warp.wgmmaGroups.erase(warp.wgmmaGroups.begin(), warp.wgmmaGroups.begin() + static_cast<long>(done));
  for (size_t& group : warp.wgmmaGroups) group -= end;
}

}  // namespace wpk::emulator

WPK_API void wpk_emulator_mbarrier_init(unsigned long barrier, int count) {
  Barrier& state = barrierAt(barrier);
  if (count < 1 || count > 0x7fff) fail("a barrier for %d arrivals", count);
  state.bytes = 0;
  state.pending = static_cast<uint16_t>(count);
  state.count = static_cast<uint16_t>(count);
  state.phase = 0;
}

WPK_API void wpk_emulator_mbarrier_arrive(unsigned long barrier, int transaction_bytes) {
  Barrier& state = barrierAt(barrier);
  if (state.pending == 0) fail("more arrivals at a barrier than its count of %u", unsigned{state.count});
  state.bytes += transaction_bytes;
  state.pending--;
  const wpk::uint64 before = worker->progress;
  completePhase(state);
  // Whoever waited for this phase may run before this thread does anything else.
  constexpr int kYields = 3;
  if (worker->has(kRandomOrder) && worker->progress != before) {
    for (int i = 0; i < kYields; ++i) yieldNow();
  }
}

WPK_API void wpk_emulator_mbarrier_wait(unsigned long barrier, int parity) {
  Worker& self = *worker;
  const volatile Barrier& state = barrierAt(barrier);
  while (state.phase == (parity & 1)) {
    if (self.progress != self.polledProgress) {
      self.polledProgress = self.progress;
      self.idlePolls = 0;
    }
    // When all fibers have polled in vain, only a pending copy can help.
    if (++self.idlePolls > 4 * self.live + 64) {
      if (!landTensorCopy()) fail("deadlock: every runnable thread waits at a barrier in shared memory");
      self.idlePolls = 0;
    }
    yieldNow();
  }
}

WPK_API void wpk_emulator_tensor_copy(unsigned long target, const void* map, unsigned long barrier,
                                      const int* coordinates, int rank) {
  TensorCopy copy{target, barrier, map, {}, rank};
  memcpy(copy.coordinates, coordinates, sizeof(int) * static_cast<size_t>(rank));
  checkTensorCopy(copy);
  if (!worker->has(kLateCopies)) return land(copy);
  const TensorMap& layout = *static_cast<const TensorMap*>(map);
  const size_t bytes = static_cast<size_t>(layout.box[0]) * layout.elementBytes * boxRows(layout);
  memset(reinterpret_cast<void*>(target), 0xff, bytes);
  worker->tensorCopies.push_back(copy);
}
