#include "plugins/core/tensor_map.hpp"

#include <algorithm>
#include <string>

#include "plugins/core/error.hpp"
#include "plugins/core/tensor_map_limits.hpp"

namespace wpk
{
namespace
{

// Enumerations of cuda.h. Elements are unsigned integers of their size: a copy moves bits, whatever they mean, and zero
// is zero in every type; but tf32 where a copy rounds.
constexpr int type_uint8 = 0, type_uint16 = 1, type_uint32 = 2, type_uint64 = 4, type_tfloat32 = 11;
constexpr int no_interleave = 0, promotion_256_bytes = 3, zeros_outside = 0;
constexpr std::uint64_t unread_stride = 16; // of a single dimension, which has none: the driver refuses a null pointer

int type_of(const TensorMapArgument& argument)
{
    if (argument.to_tf32)
    {
        return type_tfloat32;
    }
    switch (argument.element_bytes)
    {
    case 1:
        return type_uint8;
    case 2:
        return type_uint16;
    case 4:
        return type_uint32;
    case 8:
        return type_uint64;
    default:
        refuse_tensor_map(
            "has elements of " + std::to_string(argument.element_bytes) + " bytes, 1, 2, 4 and 8 are allowed");
    }
}

int swizzle_of(std::uint32_t bytes)
{
    switch (bytes)
    {
    case 0:
        return 0;
    case 32:
        return 1;
    case 64:
        return 2;
    case 128:
        return 3;
    default:
        refuse_tensor_map("has a swizzle of " + std::to_string(bytes) + " bytes, 0, 32, 64 and 128 are allowed");
    }
}

std::uint64_t extent_of(const Expression& expression, const Dims& dims)
{
    const std::int64_t size = evaluate(expression, dims);
    if (size < 1)
    {
        refuse_tensor_map("has an extent or a stride of " + std::to_string(size) + ", at least 1 is allowed");
    }
    return static_cast<std::uint64_t>(size);
}

} // namespace

SizedTensorMap::SizedTensorMap(const TensorMapArgument& argument, const Dims& dims)
    : input_(argument.index),
      rank_(static_cast<std::uint32_t>(argument.shape.size())),
      type_(type_of(argument)),
      swizzle_(swizzle_of(argument.swizzle)),
      is_im2col_(argument.im2col.has_value())
{
    strides_.fill(unread_stride);
    steps_.fill(1);
    const auto sized = [&](const Expression& expression)
    {
        return extent_of(expression, dims);
    };
    std::transform(argument.shape.begin(), argument.shape.end(), shape_.begin(), sized);
    std::transform(argument.strides.begin(), argument.strides.end(), strides_.begin(), sized);
    require_possible(argument, shape_, strides_);
    std::copy(argument.box.begin(), argument.box.end(), box_.begin());
    if (is_im2col_)
    {
        const Im2col& mode = *argument.im2col;
        std::copy(mode.lower.begin(), mode.lower.end(), lower_.begin());
        std::copy(mode.upper.begin(), mode.upper.end(), upper_.begin());
        std::copy(mode.steps.begin(), mode.steps.end(), steps_.begin() + 1);
    }
    if (driver().cuTensorMapEncodeTiled == nullptr || driver().cuTensorMapEncodeIm2col == nullptr)
    {
        throw Error(Code::no_driver,
            "the CUDA driver knows no tensor maps, which drivers do since CUDA 12.0; fix: install a newer driver");
    }
}

CUresult SizedTensorMap::encode(std::uint64_t address, TensorMapDescriptor& descriptor) const noexcept
{
    void* memory = reinterpret_cast<void*>(address);
    if (is_im2col_)
    {
        return driver().cuTensorMapEncodeIm2col(&descriptor, type_, rank_, memory, shape_.data(), strides_.data(),
            lower_.data(), upper_.data(), box_[0], box_[1], steps_.data(), no_interleave, swizzle_, promotion_256_bytes,
            zeros_outside);
    }
    return driver().cuTensorMapEncodeTiled(&descriptor, type_, rank_, memory, shape_.data(), strides_.data(),
        box_.data(), steps_.data(), no_interleave, swizzle_, promotion_256_bytes, zeros_outside);
}

} // namespace wpk
