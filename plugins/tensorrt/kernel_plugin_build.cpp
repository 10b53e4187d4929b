// What TensorRT asks while it builds an engine: types, shapes, formats, memory and tactics.
#include <algorithm>
#include <set>

#include "plugins/core/error.hpp"
#include "plugins/tensorrt/kernel_plugin.hpp"
#include "plugins/tensorrt/tensors.hpp"

namespace wpk
{
namespace
{

const Tensor& tensor_at(const OperatorSpec& spec, std::size_t position)
{
    const std::size_t inputs = spec.inputs.size();
    return position < inputs ? spec.inputs[position] : spec.outputs.at(position - inputs);
}

bool has_formats(const OperatorSpec& spec, const Variant& variant, const std::vector<nvinfer1::TensorFormat>& formats)
{
    for (std::size_t i = 0; i < formats.size(); ++i)
    {
        if (format_of(variant.formats[i]) != formats[i] || !fills_vectors(tensor_at(spec, i), variant.formats[i]))
        {
            return false;
        }
    }
    return true;
}

} // namespace

std::vector<std::size_t> KernelPlugin::variants_for(const std::vector<nvinfer1::TensorFormat>& formats) const
{
    const OperatorSpec& spec = operator_->spec();
    std::vector<std::size_t> fitting;
    for (std::size_t number = 0; number < spec.variants.size(); ++number)
    {
        if (has_formats(spec, spec.variants[number], formats))
        {
            fitting.push_back(number);
        }
    }
    return fitting;
}

std::vector<std::size_t> KernelPlugin::ready_variants_for(const std::vector<nvinfer1::TensorFormat>& formats) const
{
    std::vector<std::size_t> ready = variants_for(formats);
    const auto is_missing = [this](std::size_t number)
    {
        return !operator_->can_execute(number);
    };
    ready.erase(std::remove_if(ready.begin(), ready.end(), is_missing), ready.end());
    return ready;
}

std::int32_t KernelPlugin::configurePlugin(const nvinfer1::DynamicPluginTensorDesc* inputs, std::int32_t input_count,
    const nvinfer1::DynamicPluginTensorDesc* outputs, std::int32_t output_count) noexcept
{
    return guarded(
        [&]
        {
            const auto format = [](const nvinfer1::DynamicPluginTensorDesc& each)
            {
                return each.desc.format;
            };
            std::vector<nvinfer1::TensorFormat> formats;
            std::transform(inputs, inputs + input_count, std::back_inserter(formats), format);
            std::transform(outputs, outputs + output_count, std::back_inserter(formats), format);
            valid_ = ready_variants_for(formats);
            if (valid_.empty())
            {
                throw Error(Code::unsupported, "operator '" + operator_->spec().name
                                                   + "' has no kernel for the formats that it is configured with; "
                                                     "fix: report it, this is a bug in wpk");
            }
        });
}

std::int32_t KernelPlugin::getOutputDataTypes(
    nvinfer1::DataType* types, std::int32_t output_count, const nvinfer1::DataType*, std::int32_t) const noexcept
{
    const std::vector<Tensor>& outputs = operator_->spec().outputs;
    if (static_cast<std::size_t>(output_count) != outputs.size())
    {
        return failure;
    }
    std::transform(outputs.begin(), outputs.end(), types, [](const Tensor& each) { return type_of(each.type); });
    return 0;
}

std::int32_t KernelPlugin::getOutputShapes(const nvinfer1::DimsExprs* inputs, std::int32_t input_count,
    const nvinfer1::DimsExprs*, std::int32_t, nvinfer1::DimsExprs* outputs, std::int32_t output_count,
    nvinfer1::IExprBuilder& builder) noexcept
{
    return guarded(
        [&]
        {
            const OperatorSpec& spec = operator_->spec();
            if (static_cast<std::size_t>(input_count) != spec.inputs.size()
                || static_cast<std::size_t>(output_count) != spec.outputs.size())
            {
                throw Error(Code::invalid_argument,
                    "operator '" + spec.name + "' has " + std::to_string(spec.inputs.size()) + " inputs and "
                        + std::to_string(spec.outputs.size()) + " outputs, given are " + std::to_string(input_count)
                        + " and " + std::to_string(output_count) + "; fix: give the node what wpk wrote");
            }
            for (std::size_t number = 0; number < spec.outputs.size(); ++number)
            {
                const std::vector<Expression>& shape = spec.outputs[number].shape;
                outputs[number].nbDims = static_cast<std::int32_t>(shape.size());
                for (std::size_t axis = 0; axis < shape.size(); ++axis)
                {
                    const auto* extent = expression_of(shape[axis], spec, inputs, builder);
                    if (extent == nullptr)
                    {
                        throw Error(Code::invalid_argument, "TensorRT makes no expression of a shape of operator '"
                                                                + spec.name + "'; fix: see its own errors");
                    }
                    outputs[number].d[axis] = extent;
                }
            }
        });
}

bool KernelPlugin::supportsFormatCombination(std::int32_t position, const nvinfer1::DynamicPluginTensorDesc* tensors,
    std::int32_t input_count, std::int32_t output_count) noexcept
{
    bool is_supported = false;
    guarded(
        [&]
        {
            const OperatorSpec& spec = operator_->spec();
            const auto at = static_cast<std::size_t>(position);
            if (static_cast<std::size_t>(input_count) != spec.inputs.size()
                || static_cast<std::size_t>(output_count) != spec.outputs.size()
                || at >= spec.inputs.size() + spec.outputs.size()
                || tensors[at].desc.type != type_of(tensor_at(spec, at).type))
            {
                return;
            }
            std::vector<nvinfer1::TensorFormat> formats; // what stands behind the position is not valid yet
            std::transform(tensors, tensors + at + 1, std::back_inserter(formats),
                [](const nvinfer1::DynamicPluginTensorDesc& each) { return each.desc.format; });
            const bool is_whole = at + 1 == spec.inputs.size() + spec.outputs.size();
            is_supported = !(is_whole ? ready_variants_for(formats) : variants_for(formats)).empty();
        });
    return is_supported;
}

std::int32_t KernelPlugin::getNbOutputs() const noexcept
{
    return static_cast<std::int32_t>(operator_->spec().outputs.size());
}

std::size_t KernelPlugin::getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, std::int32_t input_count,
    const nvinfer1::DynamicPluginTensorDesc*, std::int32_t) const noexcept
{
    std::size_t bytes = 0;
    guarded(
        [&]
        {
            const OperatorSpec& spec = operator_->spec();
            for (const auto limit : {&nvinfer1::DynamicPluginTensorDesc::min, &nvinfer1::DynamicPluginTensorDesc::max})
            {
                std::vector<const nvinfer1::Dims*> extents;
                std::transform(inputs, inputs + input_count, std::back_inserter(extents),
                    [limit](const nvinfer1::DynamicPluginTensorDesc& each) { return &(each.*limit); });
                const Dims dims = dims_of(spec, extents);
                for (const Variant& variant : spec.variants)
                {
                    bytes = std::max<std::size_t>(bytes, workspace_bytes(variant.work, dims));
                }
            }
        });
    return bytes;
}

std::int32_t KernelPlugin::getValidTactics(std::int32_t* tactics, std::int32_t count) noexcept
{
    if (static_cast<std::size_t>(count) > valid_.size())
    {
        return failure;
    }
    std::transform(valid_.begin(), valid_.begin() + count, tactics,
        [](std::size_t variant) { return static_cast<std::int32_t>(variant + 1); });
    return 0;
}

std::int32_t KernelPlugin::getNbTactics() noexcept
{
    return static_cast<std::int32_t>(valid_.size());
}

const char* KernelPlugin::getTimingCacheID() noexcept
{
    return timing_id_.c_str();
}

std::int32_t KernelPlugin::getFormatCombinationLimit() noexcept
{
    std::set<std::vector<Format>> combinations;
    guarded(
        [&]
        {
            for (const Variant& variant : operator_->spec().variants)
            {
                combinations.insert(variant.formats);
            }
        });
    return std::max(1, static_cast<std::int32_t>(combinations.size()));
}

const char* KernelPlugin::getMetadataString() noexcept
{
    return metadata_.c_str();
}

} // namespace wpk
