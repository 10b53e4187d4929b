#include "plugins/tensorrt/tensors.hpp"

#include <string>

#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

constexpr std::size_t channel_axis = 1, least_rank = 3;

nvinfer1::DimensionOperation operation_of(Operation operation) noexcept
{
    using nvinfer1::DimensionOperation;
    switch (operation)
    {
    case Operation::prod:
        return DimensionOperation::kPROD;
    case Operation::max:
        return DimensionOperation::kMAX;
    case Operation::sub:
        return DimensionOperation::kSUB;
    case Operation::min:
        return DimensionOperation::kMIN;
    case Operation::ceil_div:
        return DimensionOperation::kCEIL_DIV;
    case Operation::floor_div:
        return DimensionOperation::kFLOOR_DIV;
    case Operation::equal:
        return DimensionOperation::kEQUAL;
    case Operation::less:
        return DimensionOperation::kLESS;
    case Operation::constant:
    case Operation::dimension:
    case Operation::sum:
        break;
    }
    return DimensionOperation::kSUM;
}

std::int64_t vector_of(Format format) noexcept
{
    switch (format)
    {
    case Format::hwc8:
        return 8;
    case Format::hwc16:
        return 16;
    case Format::linear:
    case Format::hwc:
        break;
    }
    return 1;
}

} // namespace

nvinfer1::DataType type_of(ElementType type) noexcept
{
    using nvinfer1::DataType;
    switch (type)
    {
    case ElementType::fp16:
        return DataType::kHALF;
    case ElementType::bf16:
        return DataType::kBF16;
    case ElementType::int8:
        return DataType::kINT8;
    case ElementType::uint8:
        return DataType::kUINT8;
    case ElementType::int32:
        return DataType::kINT32;
    case ElementType::int64:
        return DataType::kINT64;
    case ElementType::boolean:
        return DataType::kBOOL;
    case ElementType::int16:
    case ElementType::uint16:
    case ElementType::uint32:
    case ElementType::uint64:
    case ElementType::fp64:
    case ElementType::fp8_e4m3:
    case ElementType::fp8_e5m2: // TensorRT has no such types, or no format of them, and no plugin is made of them
    case ElementType::fp32:
        break;
    }
    return DataType::kFLOAT;
}

nvinfer1::TensorFormat format_of(Format format) noexcept
{
    using nvinfer1::TensorFormat;
    switch (format)
    {
    case Format::hwc:
        return TensorFormat::kHWC;
    case Format::hwc8:
        return TensorFormat::kHWC8;
    case Format::hwc16:
        return TensorFormat::kHWC16;
    case Format::linear:
        break;
    }
    return TensorFormat::kLINEAR;
}

bool fills_vectors(const Tensor& tensor, Format format) noexcept
{
    if (format == Format::linear)
    {
        return true;
    }
    if (tensor.shape.size() < least_rank)
    {
        return false;
    }
    const Expression& channels = tensor.shape[channel_axis];
    return channels.size() == 1 && channels[0].operation == Operation::constant
           && channels[0].value % vector_of(format) == 0;
}

Dims dims_of(const OperatorSpec& spec, const std::vector<const nvinfer1::Dims*>& inputs)
{
    if (inputs.size() != spec.inputs.size())
    {
        throw Error(Code::invalid_argument, "operator '" + spec.name + "' is given " + std::to_string(inputs.size())
                                                + " inputs, it has " + std::to_string(spec.inputs.size())
                                                + "; fix: give the node the inputs that wpk wrote");
    }
    const auto extent = [&](std::size_t input, std::size_t axis)
    {
        const nvinfer1::Dims& dims = *inputs[input];
        const std::size_t rank = spec.inputs[input].shape.size();
        if (dims.nbDims < 0 || static_cast<std::size_t>(dims.nbDims) != rank)
        {
            throw Error(Code::invalid_argument, "input " + std::to_string(input) + " of operator '" + spec.name
                                                    + "' has " + std::to_string(dims.nbDims) + " axes, expected are "
                                                    + std::to_string(rank) + "; fix: give it a tensor of that rank");
        }
        return static_cast<std::int64_t>(dims.d[axis]);
    };
    Dims dims;
    for (const OperatorSpec::Dimension& dimension : spec.dimensions)
    {
        dims.push_back(extent(dimension.input, dimension.axis));
    }
    for (std::size_t input = 0; input < inputs.size(); ++input)
    {
        for (std::size_t axis = 0; axis < spec.inputs[input].shape.size(); ++axis)
        {
            const std::int64_t seen = extent(input, axis), expected = evaluate(spec.inputs[input].shape[axis], dims);
            if (seen < 0 || seen != expected)
            {
                throw Error(Code::invalid_argument,
                    "axis " + std::to_string(axis) + " of input " + std::to_string(input) + " of operator '" + spec.name
                        + "' has the extent " + std::to_string(seen) + ", expected is " + std::to_string(expected)
                        + "; fix: give it the shapes that wpk optimized for");
            }
        }
    }
    return dims;
}

const nvinfer1::IDimensionExpr* expression_of(const Expression& expression, const OperatorSpec& spec,
    const nvinfer1::DimsExprs* inputs, nvinfer1::IExprBuilder& builder)
{
    std::vector<const nvinfer1::IDimensionExpr*> stack;
    for (const Instruction& instruction : expression)
    {
        if (instruction.operation == Operation::constant)
        {
            stack.push_back(builder.constant(instruction.value));
        }
        else if (instruction.operation == Operation::dimension)
        {
            const auto& dimension = spec.dimensions[static_cast<std::size_t>(instruction.value)];
            stack.push_back(inputs[dimension.input].d[dimension.axis]);
        }
        else
        {
            const nvinfer1::IDimensionExpr* right = stack.back();
            stack.pop_back();
            stack.back() = builder.operation(operation_of(instruction.operation), *stack.back(), *right);
        }
        if (stack.back() == nullptr)
        {
            return nullptr;
        }
    }
    return stack.back();
}

} // namespace wpk
