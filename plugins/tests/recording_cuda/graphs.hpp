// Streams and graphs of the double: what is executed at once, and what a capture keeps.
#pragma once

#include <functional>

#include "plugins/tests/recording_cuda/objects.hpp"

namespace recording
{

// A stream, or the legacy one where there is none.
CUstream_st& of(CUstream stream);

// Does the work, or adds it to the graph that the stream captures.
void put(CUstream stream, const char* kind, std::function<void()> work);

// A line for each node, with those that it follows.
void tell(const CUgraph_st& graph);

// In the reverse of the order in which it was captured, as far as the edges allow.
void execute(const CUgraph_st& graph);

} // namespace recording
