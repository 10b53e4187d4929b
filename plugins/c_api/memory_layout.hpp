// Where everything lies for given sizes, as wpk/plan/memory.py and wpk/plan/binding.py lay it out.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/core/spec.hpp"

namespace wpk
{

// Offsets are multiples of 256; what no step and no port touches has none that means anything.
struct Layout
{
    std::vector<std::uint64_t> offsets;
    std::uint64_t bytes = 0;
};

struct Layouts
{
    Layout arena;               // of buffers
    Layout workspace, counters; // of steps
};

// Throws Error(invalid_argument) where a size cannot be.
Layouts lay_out(const PlanSpec& plan, const Dims& dims);

// Bytes from a value's first element to the end of its last row, padding included.
std::int64_t footprint(const PlanSpec::Value& value, const Dims& dims);

std::uint64_t aligned(std::uint64_t bytes) noexcept;

} // namespace wpk
