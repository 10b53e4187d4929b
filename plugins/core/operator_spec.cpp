#include <algorithm>

#include "plugins/core/spec_parts.hpp"

namespace wpk
{
namespace
{

constexpr std::size_t least_bound_dimension = 12, least_tensor = 5, least_variant = 8 + least_work;

OperatorSpec::Dimension read_dimension(ByteReader& in)
{
    std::string name = in.text("a dimension's name");
    const std::uint32_t input = in.u32("a dimension's input");
    return {std::move(name), input, in.u32("a dimension's axis")};
}

Tensor read_tensor(ByteReader& in, std::size_t dimensions)
{
    const ElementType type = read_element_type(in);
    return {type, read_shape(in, dimensions)};
}

Format read_format(ByteReader& in)
{
    const std::uint8_t number = in.u8("a format");
    if (number > static_cast<std::uint8_t>(Format::hwc16))
    {
        spec_is_damaged("has a format " + std::to_string(number) + ", there are 0 to 3");
    }
    return static_cast<Format>(number);
}

Variant read_variant(ByteReader& in, const OperatorSpec& spec)
{
    Variant variant;
    variant.name = in.text("a variant's name");
    variant.formats = in.sequence("formats", 1, [&] { return read_format(in); });
    const std::size_t tensors = spec.inputs.size() + spec.outputs.size();
    if (variant.formats.size() != tensors)
    {
        spec_is_damaged("has variant '" + variant.name + "' with " + std::to_string(variant.formats.size())
                        + " formats for " + std::to_string(tensors) + " tensors");
    }
    const Operands operands{spec.dimensions.size(), spec.kernels.size(), spec.inputs.size(), spec.outputs.size()};
    variant.work = read_work(in, operands, "variant '" + variant.name + "'");
    return variant;
}

// A dimension is the extent of an input's axis, and that extent is the dimension itself.
void check_dimension(const OperatorSpec& spec, std::size_t number)
{
    const OperatorSpec::Dimension& dimension = spec.dimensions[number];
    const std::vector<Expression>& shape = spec.inputs[index_below(dimension.input, spec.inputs.size(), "input")].shape;
    const Expression& extent = shape[index_below(dimension.axis, shape.size(), "axis")];
    const bool is_itself = extent.size() == 1 && extent[0].operation == Operation::dimension
                           && extent[0].value == static_cast<std::int64_t>(number);
    if (!is_itself)
    {
        spec_is_damaged("reads dimension '" + dimension.name + "' off axis " + std::to_string(dimension.axis)
                        + " of input " + std::to_string(dimension.input) + ", whose extent is something else");
    }
}

} // namespace

OperatorSpec read_operator(const std::byte* data, std::size_t size)
{
    ByteReader in = body_of(data, size, SpecKind::one_operator);
    OperatorSpec spec;
    spec.name = in.text("its name");
    spec.dimensions = in.sequence("dimensions", least_bound_dimension, [&] { return read_dimension(in); });
    const auto tensor = [&]
    {
        return read_tensor(in, spec.dimensions.size());
    };
    spec.inputs = in.sequence("inputs", least_tensor, tensor);
    spec.outputs = in.sequence("outputs", least_tensor, tensor);
    spec.kernels = in.sequence("kernels", least_kernel, [&] { return read_kernel(in); });
    spec.variants = in.sequence("variants", least_variant, [&] { return read_variant(in, spec); });
    require_end(in);
    for (std::size_t number = 0; number < spec.dimensions.size(); ++number)
    {
        check_dimension(spec, number);
    }
    if (spec.outputs.empty() || spec.variants.empty())
    {
        spec_is_damaged("has " + std::to_string(spec.outputs.size()) + " outputs and "
                        + std::to_string(spec.variants.size()) + " variants, at least one of each is allowed");
    }
    const auto lacks_image = [](const Kernel& kernel)
    {
        return kernel.image.empty();
    };
    if (std::any_of(spec.kernels.begin(), spec.kernels.end(), lacks_image))
    {
        spec_is_damaged("has a kernel without its image");
    }
    return spec;
}

} // namespace wpk
