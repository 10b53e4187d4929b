// Recurrences whose weights stay on the chip: blocks share the units, each keeps its rows of R in registers for all
// steps, and they hand each other the states that they computed.
//
// A team of blocks has `sequences` sequences and all units: a block has `units` of them. Its warps split the sum over
// the states: each multiplies by tensor cores its part of the block's rows (A: all gates of 16 units to a tile each)
// with that part of the states (B: sequences are columns), and adds the parts of all warps in shared memory. Then each
// thread has a few units of a few sequences, whose c and unrounded h it keeps.
//
// States travel rounded to R's type; `exchange` says how: 0 through a cluster, 1 through global memory where blocks
// count arrivals, 2 through global memory where each pair of states says which it is (recurrent/exchange.cuh).
//
// Problem: as in recurrent/cell.cuh; R over (row, column), Y over (sequence, step, column); steps, slots, isReverse,
// inputs.
#pragma once

#include <wpk/kernels/recurrent/elements.cuh>
#include <wpk/kernels/recurrent/exchange.cuh>
#include <wpk/kernels/recurrent/team.cuh>
#include <wpk/kernels/sums/split_k.cuh>

namespace wpk
{

template <class Problem, class Schedule>
WPK_DEVICE void recurrenceMma(Inputs<Problem::inputs> inputs, int n, void* y, const Partials& partials = {})
{
    using Team = detail::RecurrentTeam<Problem, Schedule>;
    using Elements = detail::RecurrentElements<Team, Problem>;
    using ThroughMemory =
        Select<Schedule::exchange == 1, detail::GridExchange<Team, Elements>, detail::WordExchange<Team, Elements>>;
    using Exchange = Select<Team::isCluster, detail::ClusterExchange<Team, Elements>, ThroughMemory>;
    WPK_SHARED(unsigned char, shared);
    const int firstUnit = static_cast<int>(blockIdx.x) * Team::units;
    detail::RecurrentWeights<Team, Problem> weights;
    weights.load(inputs.at[1], firstUnit);
    Exchange exchange(shared, partials);
    const int teams = static_cast<int>(gridDim.y);
    for (int first = static_cast<int>(blockIdx.y) * Team::columns; first < n; first += teams * Team::columns)
    {
        Elements elements{inputs.at, firstUnit, first, minOf(Team::columns, n - first)};
        elements.begin();
        detail::loadFirstStates<Team, Problem>(inputs.at, Team::states(shared, 0), first, elements.columns);
        exchange.begin();
        elements.prepare(Problem::isReverse ? Problem::steps - 1 : 0);
        __syncthreads(); // @first_states_written
        for (int number = 0; number < Problem::steps; ++number)
        {
            const int step = Problem::isReverse ? Problem::steps - 1 - number : number;
            const int next = (number + 1) % 2;
            weights.multiply(Team::states(shared, number % 2), Team::sums(shared));
            __syncthreads(); // @sums_written
            elements.step(Team::sums(shared), step);
            if (number == Problem::steps - 1)
            {
                elements.put(y, step);
                break;
            }
            exchange.publish(elements, next);
            elements.prepare(Problem::isReverse ? step - 1 : step + 1);
            exchange.take(next, [&] { elements.put(y, step); });
        }
        elements.end(y);
        __syncthreads(); // @sequences_done: what follows begins with their memory
    }
    exchange.end();
}

} // namespace wpk
