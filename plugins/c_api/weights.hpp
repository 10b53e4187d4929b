// A plan's weights on the GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "plugins/c_api/container.hpp"
#include "plugins/c_api/device.hpp"
#include "plugins/core/spec.hpp"

namespace wpk
{

struct Weights
{
    DeviceMemory memory;
    std::vector<std::uint64_t> addresses; // multiples of 256
};

// Copy the weights from the file, piece by piece: this machine holds 4 MiB of them. Throws Error(io, damaged, driver,
// out_of_memory).
Weights upload_weights(const Container& file, const std::vector<PlanSpec::Weight>& weights);

} // namespace wpk
