// What follows what on a stream while it is captured, as wpk/device/capture_order.py orders it.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/library.hpp"

namespace wpk
{

using Nodes = std::vector<CUgraphNode>;

// A library's implementation, and where its operator's operands lie.
struct BoundCall
{
    ReadyCall* call;
    Addresses addresses;
};

using BoundWork = std::variant<BoundLaunch, BoundCall>;

// Work, and for each piece the numbers of those after which it begins.
struct OrderedWork
{
    std::vector<BoundWork> pieces;
    std::vector<std::vector<std::size_t>> predecessors;
};

// The graph that a stream is captured in, null where it is not, and the nodes in front of what is put on it next.
// Throws Error(driver), also where the capture was broken off.
struct Front
{
    CUgraph graph;
    Nodes nodes;
};
Front front_of(CUstream stream);

// Put work on a captured stream: the graph gets edges from predecessors, from what is in front of the stream to
// pieces that have none, and no others. The driver makes edges programmatic between two kernels of which the second
// may be launched early. Libraries launch kernels early that trust the one in front to let them begin only when its
// results are there, and ours let the next one begin sooner: between the two overlap ends. Throws Error(driver).
void put_in_order(CUstream stream, const OrderedWork& work);

// What follows on a captured stream begins after the kernels in front of it have ended, however it is launched: a
// node that does nothing stands between. Throws Error(driver).
void end_overlap(CUstream stream);

} // namespace wpk
