// Blocks that share a piece of work count their arrivals, and the last one goes on with what all have written.
#pragma once

#include <wpk/kernels/copies/vector.cuh>
#include <wpk/kernels/portable.cuh>

namespace wpk
{

// Counts a block's arrival; true in thread 0 of the last one. All threads of a block call it.
WPK_DEVICE bool countArrival(int* counter, int arrivals)
{
    __syncthreads(); // @writes_done: what the block has written comes before its arrival
    if (threadIdx.x != 0)
        return false;
    __threadfence(); // @writes_published: for the whole device to see, before the count
    const bool last = atomicAdd(counter, 1) == arrivals - 1; // @arrivals_counted
    __threadfence();                                         // what is read from here on comes after the count
    if (last)
        *counter = 0; // @counter_reset
    return last;
}

// True in all threads of the block that comes here as the last of `arrivals`: what these blocks wrote to global
// memory before can then be read by loadFresh. Nobody waits. All threads of a block call it.
//
// `counter` is zero before the first arrival, and again after the last.
WPK_DEVICE bool arriveLast(int* counter, int arrivals)
{
    return __syncthreads_or(countArrival(counter, arrivals));
}

// The same by a barrier more and a word of shared memory, which the block does not use now, and may use again
// afterwards: around the vote ptxas spills registers of kernels that multiply by mma.
WPK_DEVICE bool arriveLast(int* counter, int arrivals, int* flag)
{
    const bool isLast = countArrival(counter, arrivals);
    if (threadIdx.x == 0)
        *flag = isLast ? 1 : 0;
    __syncthreads();
    const bool last = *flag != 0;
    __syncthreads(); // everyone has read the flag
    return last;
}

// As load, for global memory that other blocks have written during this launch: passes by L1.
template <class T, int N>
WPK_DEVICE Vector<T, N> loadFresh(const T* pointer)
{
#if WPK_ON_GPU
    using Word = detail::Word<sizeof(T) * N>;
    const Word word = __ldcg(reinterpret_cast<const Word*>(pointer));
    Vector<T, N> vector;
    memcpy(&vector, &word, sizeof(vector));
    return vector;
#else
    return load<T, N>(pointer);
#endif
}

} // namespace wpk
