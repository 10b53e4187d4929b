// A tensor map with sizes: what the driver encodes for an address.
#pragma once

#include <array>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/spec.hpp"
#include "plugins/core/tensor_map_limits.hpp"

namespace wpk
{

class SizedTensorMap
{
public:
    // Throws Error(invalid_argument) where there is no such tensor map, Error(no_driver) where the driver has no tensor
    // maps.
    SizedTensorMap(const TensorMapArgument& argument, const Dims& dims);

    // Encode the descriptor for an address, a multiple of `map_alignment`. Allocates nothing.
    CUresult encode(std::uint64_t address, TensorMapDescriptor& descriptor) const noexcept;

    std::uint32_t input() const noexcept
    {
        return input_;
    }

private:
    std::uint32_t input_, rank_;
    int type_, swizzle_;
    bool is_im2col_;
    MapSizes shape_{}, strides_{};
    std::array<std::uint32_t, most_map_rank> box_{}, steps_{};
    std::array<int, most_map_rank> lower_{}, upper_{};
};

} // namespace wpk
