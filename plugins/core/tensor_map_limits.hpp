// What a tensor map must be for a GPU's tensor copies to take it, as wpk/tensor_maps.py has it.
#pragma once

#include <array>

#include "plugins/core/spec.hpp"

namespace wpk
{

constexpr std::size_t most_map_rank = 5;

using MapSizes = std::array<std::uint64_t, most_map_rank>;

// Throws Error(invalid_argument), whose text says what no tensor map can be. `shape` and `strides` are the argument's,
// evaluated, as many as it has; its address must be a multiple of `map_alignment`, which is not looked at here.
void require_possible(const TensorMapArgument& argument, const MapSizes& shape, const MapSizes& strides);

constexpr std::uint64_t map_alignment = 16; // bytes

[[noreturn]] void refuse_tensor_map(const std::string& what);

} // namespace wpk
