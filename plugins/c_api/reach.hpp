// How far steps reach from where their operands begin, and how much memory there is, as wpk/plan/checks compares it.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/core/spec.hpp"

namespace wpk
{

// Bytes from where each operand of a step begins to the end of the memory that it lies in.
struct Rooms
{
    std::vector<std::int64_t> inputs, outputs;
};

// Where each buffer ends: its size at these sizes.
std::vector<std::int64_t> ends_of_buffers(const PlanSpec& plan, const Dims& dims);

// `ends` is where each buffer ends. Throws Error(damaged) for a value that begins behind it.
Rooms rooms_of(const PlanSpec& plan, const PlanSpec::Step& step, const std::vector<std::int64_t>& ends);

// Machine code is executed as it is; what is told besides, the tensors of a library and of tensor maps, must lie within
// the operands. Throws Error(damaged, invalid_argument).
void check_reach(const PlanSpec::Step& step, const Rooms& rooms, const Dims& dims);

} // namespace wpk
