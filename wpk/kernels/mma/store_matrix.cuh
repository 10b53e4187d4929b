// 8 x 8 tiles of 16-bit values from a warp's registers to shared memory, where loadMatrix4 of mma.cuh finds them:
// stmatrix, from sm_90 on; before, each lane stores its own words.
//
// A lane has a word of each of two or four tiles: of row g the columns 2t and 2t + 1, where g = lane / 4 and
// t = lane % 4. Lane i gives the address of row i % 8 of tile i / 8 (16 bytes, 16-byte aligned); of two tiles those of
// the lanes from 16 on are not used. So two accumulator tiles of 16 x 8, rounded two values a word, are the words of
// rows g and g + 8 of the first, then those of the second; lane i addresses row i % 16 and the eight columns of tile
// i / 16.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// All lanes of the warp call it, and wait (__syncwarp) before they read what others gave.
template <int Tiles>
WPK_DEVICE void storeMatrices(unsigned char* row, const uint32 (&words)[Tiles])
{
    static_assert(Tiles == 2 || Tiles == 4, "as the instruction stores them");
#if WPK_ON_GPU
    const SharedAddress own = sharedAddress(row);
#if __CUDA_ARCH__ >= 900
    if constexpr (Tiles == 4)
    {
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
            :
            : "r"(own), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
            : "memory");
    }
    else
    {
        asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};"
            :
            : "r"(own), "r"(words[0]), "r"(words[1])
            : "memory");
    }
#else
    const int lane = laneIndex();
    WPK_UNROLL
    for (int tile = 0; tile < Tiles; ++tile)
    {
        const SharedAddress at = shuffle(own, tile * 8 + lane / 4) + lane % 4 * 4;
        asm volatile("st.shared.b32 [%0], %1;" : : "r"(at), "r"(words[tile]) : "memory");
    }
#endif
#else
    Vector<uint32, 4> ofRow;
    emulated::StoreMatricesOperands operands{words, ofRow.values, row, Tiles};
    wpk_emulator_collective(~0u, emulated::Collective::storeMatrices, &operands);
    if (laneIndex() < Tiles * 8)
        store<uint32, 4>(reinterpret_cast<uint32*>(row), ofRow);
#endif
}

} // namespace wpk
