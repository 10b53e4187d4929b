// Four 8 x 8 tiles of 16-bit values from a warp's registers to shared memory, as loadMatrix4 of mma.cuh gives them:
// stmatrix, from sm_90 on; before, each lane stores its own words.
//
// Lane i gives the address of row i % 8 of tile i / 8 (16 bytes, 16-byte aligned), and of each tile its values of row g,
// columns 2t and 2t + 1, where g = lane / 4 and t = lane % 4. So two accumulator tiles of 16 x 8, rounded two values a
// word, are the words of rows g and g + 8 of the first, then those of the second; lane i addresses row i % 16 and
// eight columns from (i / 16) * 8 on.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/sums/warp.cuh>

namespace wpk
{

// All lanes of the warp call it, and wait (__syncwarp) before they read what others gave.
WPK_DEVICE void storeMatrix4(unsigned char* row, const uint32 (&words)[4])
{
#if WPK_ON_GPU
    const SharedAddress own = sharedAddress(row);
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
        :
        : "r"(own), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
        : "memory");
#else
    const int lane = laneIndex();
    WPK_UNROLL
    for (int j = 0; j < 4; ++j)
    {
        const SharedAddress at = shuffle(own, j * 8 + lane / 4) + lane % 4 * 4;
        asm volatile("st.shared.b32 [%0], %1;" : : "r"(at), "r"(words[j]) : "memory");
    }
#endif
#else
    Vector<uint32, 4> ofRow;
    emulated::StoreMatrixOperands operands{words, ofRow.values, row};
    wpk_emulator_collective(~0u, emulated::Collective::storeMatrix, &operands);
    store<uint32, 4>(reinterpret_cast<uint32*>(row), ofRow);
#endif
}

} // namespace wpk
