// What follows what on a stream while it is captured, as wpk/device/capture_order.py orders it.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/launcher.hpp"

namespace wpk
{

using Nodes = std::vector<CUgraphNode>;

// Launches, and for each the numbers of those after which it begins.
struct OrderedLaunches
{
    std::vector<BoundLaunch> launches;
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

// Put launches on a captured stream: the graph gets edges from their predecessors, from what is in front of the
// stream to those that have none, and no others. The driver makes edges programmatic between two kernels of which
// the second may be launched early. Throws Error(driver).
void put_in_order(CUstream stream, const OrderedLaunches& work);

// What follows on a captured stream begins after the kernels in front of it have ended, however it is launched: a
// node that does nothing stands between. Throws Error(driver).
void end_overlap(CUstream stream);

} // namespace wpk
