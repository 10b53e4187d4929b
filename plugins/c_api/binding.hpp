// A plan at given sizes and addresses, as wpk/engine/bindings.py and run_cache.py bind it.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/c_api/capture_order.hpp"
#include "plugins/c_api/loaded_work.hpp"
#include "plugins/c_api/memory_layout.hpp"
#include "plugins/c_api/ports.hpp"

namespace wpk
{

// Where everything begins that is the engine's.
struct Places
{
    std::uint64_t arena, workspace, counters;
    std::vector<std::uint64_t> weights;
};

struct Copy
{
    std::uint64_t source, target, bytes;
};

struct Binding
{
    std::vector<Copy> before;
    OrderedWork work;
    std::vector<Copy> after;
};

// `addresses` are those of the ports, in their order. Throws Error(invalid_argument, damaged, driver).
Binding bind_plan(const PlanSpec& plan, const LoadedWork& loaded, const Layouts& layouts, const Places& places,
    const std::vector<SizedPort>& ports, const std::vector<std::uint64_t>& addresses, const Dims& dims);

// Put a run on a captured stream. Throws Error(driver).
void put_on(CUstream stream, const Binding& binding);

} // namespace wpk
