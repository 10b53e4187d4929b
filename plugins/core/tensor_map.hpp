// A tensor map with sizes: what the driver encodes for an address.
#pragma once

#include <array>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/spec.hpp"

namespace wpk
{

class SizedTensorMap
{
public:
    // Throws Error(invalid_argument) where a size is negative, Error(no_driver) where the driver has no tensor maps.
    SizedTensorMap(const TensorMapArgument& argument, const Dims& dims);

    // Encode the descriptor for an address. The driver checks what the hardware takes. Allocates nothing.
    CUresult encode(std::uint64_t address, TensorMapDescriptor& descriptor) const noexcept;

    std::uint32_t input() const noexcept
    {
        return input_;
    }

private:
    static constexpr std::size_t most_rank = 5;

    std::uint32_t input_, rank_;
    int type_, swizzle_;
    bool is_im2col_;
    std::array<std::uint64_t, most_rank> shape_{}, strides_{};
    std::array<std::uint32_t, most_rank> box_{}, steps_{};
    std::array<int, most_rank> lower_{}, upper_{};
};

} // namespace wpk
