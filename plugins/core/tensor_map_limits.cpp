#include "plugins/core/tensor_map_limits.hpp"

#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

// CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col without interleave.
constexpr std::uint64_t most_extent = std::uint64_t{1} << 32, stride_limit = std::uint64_t{1} << 40;
constexpr std::uint32_t most_box = 256, most_pixels = 1024, most_step = 8, fp32_bytes = 4;
constexpr std::size_t least_im2col_rank = 3;

struct Range
{
    std::int64_t low, high;
};

// Corners of the box in im2col mode, by the number of dimensions from three on.
constexpr Range corners[] = {{-(1 << 15), (1 << 15) - 1}, {-128, 127}, {-16, 15}};

template <typename Number>
void require_within(const char* what, Number value, std::int64_t low, std::int64_t high)
{
    if (value < static_cast<Number>(low) || value > static_cast<Number>(high))
    {
        refuse_tensor_map(std::string("has ") + what + " of " + std::to_string(value) + ", " + std::to_string(low)
                          + " to " + std::to_string(high) + " are allowed");
    }
}

void check_memory(std::size_t rank, const MapSizes& shape, const MapSizes& strides)
{
    for (std::size_t axis = 0; axis < rank; ++axis)
    {
        require_within("an extent", shape[axis], 1, most_extent);
    }
    for (std::size_t axis = 0; axis + 1 < rank; ++axis)
    {
        if (strides[axis] % map_alignment != 0 || strides[axis] == 0 || strides[axis] >= stride_limit)
        {
            refuse_tensor_map("has a stride of " + std::to_string(strides[axis]) + " bytes, multiples of "
                              + std::to_string(map_alignment) + " between 0 and " + std::to_string(stride_limit)
                              + " are allowed");
        }
    }
}

void check_box(const TensorMapArgument& argument)
{
    for (std::size_t axis = 0; axis < argument.box.size(); ++axis)
    {
        const bool is_pixels = argument.im2col.has_value() && axis == 1;
        require_within("a box extent", argument.box[axis], 1, is_pixels ? most_pixels : most_box);
    }
    const std::uint32_t row = argument.box[0] * argument.element_bytes;
    if (row % map_alignment != 0)
    {
        refuse_tensor_map("has a box whose rows have " + std::to_string(row) + " bytes, multiples of "
                          + std::to_string(map_alignment) + " are allowed");
    }
    if (argument.swizzle > 0 && argument.swizzle < row)
    {
        refuse_tensor_map("has a swizzle of " + std::to_string(argument.swizzle) + " bytes, a row of its box has "
                          + std::to_string(row) + ", and no more than the swizzle is allowed");
    }
}

void check_im2col(const Im2col& mode, std::size_t rank, const MapSizes& shape)
{
    const Range range = corners[rank - least_im2col_rank];
    for (std::size_t axis = 0; axis + 2 < rank; ++axis)
    {
        const std::int64_t lower = mode.lower[axis], upper = mode.upper[axis];
        require_within("a lower corner", lower, range.low, range.high);
        require_within("an upper corner", upper, range.low, range.high);
        require_within("a step", mode.steps[axis], 1, most_step);
        if (static_cast<std::int64_t>(shape[axis + 1]) + upper - lower < 1)
        {
            refuse_tensor_map("has no pixel between " + std::to_string(lower) + " and " + std::to_string(upper) + " of "
                              + std::to_string(shape[axis + 1]) + ", at least one is allowed");
        }
    }
}

} // namespace

void refuse_tensor_map(const std::string& what)
{
    throw Error(Code::invalid_argument, "a tensor map " + what + "; fix: write the plan again with wpk");
}

void require_possible(const TensorMapArgument& argument, const MapSizes& shape, const MapSizes& strides)
{
    const std::size_t rank = argument.shape.size();
    if (argument.to_tf32 && argument.element_bytes != fp32_bytes)
    {
        refuse_tensor_map("rounds elements of " + std::to_string(argument.element_bytes)
                          + " bytes to tf32, only those of fp32's " + std::to_string(fp32_bytes) + " are allowed");
    }
    check_memory(rank, shape, strides);
    check_box(argument);
    if (argument.im2col.has_value())
    {
        check_im2col(*argument.im2col, rank, shape);
    }
}

} // namespace wpk
