// Inputs and outputs: which of them lie in the caller's memory, and which are copied.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/core/spec.hpp"

namespace wpk
{

// One input or output at given sizes. Inputs are numbered first, then outputs.
struct SizedPort
{
    const PlanSpec::Value* value;
    bool is_output;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes;
    // Its buffer holds nothing that lies outside of it, so that the caller's memory can take the buffer's place
    // (wpk/engine/port_memory.py); else it is copied.
    bool is_replaceable;
};

std::vector<SizedPort> size_ports(const PlanSpec& plan, const Dims& dims);

// Shape and dense bytes of a port alone.
std::vector<std::int64_t> shape_of(const PlanSpec::Port& port, const Dims& dims);
std::uint64_t bytes_of(const PlanSpec& plan, const PlanSpec::Port& port, const Dims& dims);

// Throws Error(invalid_argument) where no address was given, one is no multiple of 16, or an output lies in the
// memory of another port. Addresses are in the order of the ports.
void check_addresses(const std::vector<SizedPort>& ports, const std::vector<std::uint64_t>& addresses);

} // namespace wpk
