// Blocks that wait for each other: in each round a block adds what its neighbour wrote in the one before.
#include <wpk/kernels/barriers/grid_barrier.cuh>

WPK_KERNEL(32) grid_rounds(int* y, int* parts, int* counters, int rounds)
{
    const int blocks = static_cast<int>(gridDim.x), block = static_cast<int>(blockIdx.x);
    const int lane = static_cast<int>(threadIdx.x), neighbour = (block + 1) % blocks;
    int value = block;
    for (int round = 1; round <= rounds; ++round)
    {
        int* const buffer = parts + round % 2 * (blocks * 32);
        wpk::store<int, 1>(buffer + block * 32 + lane, {{value}});
        __syncthreads(); // @written
        if (lane == 0)
        {
            wpk::arriveGrid(counters);               // @arrived
            wpk::waitGrid(counters, round * blocks); // @waited
        }
        __syncthreads(); // @all_arrived
        value += wpk::loadFresh<int, 1>(buffer + neighbour * 32 + (lane ^ 7))[0];
    }
    y[block * 32 + lane] = value;
    if (lane == 0)
        wpk::leaveGrid(counters, counters + 1, blocks); // @left
}
WPK_EXPORT(grid_rounds)
