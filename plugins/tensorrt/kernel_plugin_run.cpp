// What TensorRT asks while it executes an engine, or writes it.
#include <algorithm>

#include "plugins/core/error.hpp"
#include "plugins/tensorrt/kernel_plugin.hpp"
#include "plugins/tensorrt/last_error.hpp"
#include "plugins/tensorrt/tensors.hpp"

namespace wpk
{
namespace
{

std::vector<const nvinfer1::Dims*> extents_of(const nvinfer1::PluginTensorDesc* tensors, std::int32_t count)
{
    std::vector<const nvinfer1::Dims*> dims;
    std::transform(tensors, tensors + count, std::back_inserter(dims), [](const auto& each) { return &each.dims; });
    return dims;
}

} // namespace

std::int32_t KernelPlugin::setTactic(std::int32_t tactic) noexcept
{
    return guarded(
        [&]
        {
            const std::size_t variants = operator_->spec().variants.size();
            if (tactic < 0 || static_cast<std::size_t>(tactic) > variants)
            {
                throw Error(Code::invalid_argument, "operator '" + operator_->spec().name + "' has no tactic "
                                                        + std::to_string(tactic) + ", there are 1 to "
                                                        + std::to_string(variants)
                                                        + "; fix: build the engine again with this plugin library");
            }
            tactic_ = tactic;
        });
}

std::int32_t KernelPlugin::onShapeChange(const nvinfer1::PluginTensorDesc* inputs, std::int32_t input_count,
    const nvinfer1::PluginTensorDesc* outputs, std::int32_t output_count) noexcept
{
    return guarded(
        [&]
        {
            const OperatorSpec& spec = operator_->spec();
            const Dims dims = dims_of(spec, extents_of(inputs, input_count));
            std::vector<nvinfer1::TensorFormat> formats;
            const auto format = [](const nvinfer1::PluginTensorDesc& each)
            {
                return each.format;
            };
            std::transform(inputs, inputs + input_count, std::back_inserter(formats), format);
            std::transform(outputs, outputs + output_count, std::back_inserter(formats), format);
            const std::vector<std::size_t> fitting = variants_for(formats);
            const std::size_t asked = tactic_ > 0       ? static_cast<std::size_t>(tactic_) - 1
                                      : fitting.empty() ? 0
                                                        : fitting[0];
            if (std::find(fitting.begin(), fitting.end(), asked) == fitting.end())
            {
                throw Error(Code::invalid_argument, "tactic " + std::to_string(tactic_) + " of operator '" + spec.name
                                                        + "' is not for these formats; fix: build the engine again "
                                                          "with this plugin library");
            }
            if (bound_ == nullptr || !bound_->is_for(asked, dims))
            {
                bound_.reset();
                bound_ = std::make_unique<BoundOperator>(*operator_, asked, dims);
            }
        });
}

std::int32_t KernelPlugin::enqueue(const nvinfer1::PluginTensorDesc*, const nvinfer1::PluginTensorDesc*,
    const void* const* inputs, void* const* outputs, void* workspace, cudaStream_t stream) noexcept
{
    return guarded(
        [&]
        {
            if (bound_ == nullptr)
            {
                throw Error(Code::invalid_argument, "operator '" + operator_->spec().name
                                                        + "' is executed before it was told its shapes; fix: report "
                                                          "it, this is a bug in TensorRT or in wpk");
            }
            bound_->enqueue(inputs, outputs, workspace, reinterpret_cast<CUstream>(stream));
        });
}

nvinfer1::IPluginV3* KernelPlugin::attachToContext(nvinfer1::IPluginResourceContext* context) noexcept
{
    nvinfer1::IPluginV3* copy = nullptr;
    nvinfer1::IErrorRecorder* recorder = context != nullptr ? context->getErrorRecorder() : nullptr;
    guarded(
        [&]
        {
            auto attached = std::unique_ptr<KernelPlugin>(new KernelPlugin(*this));
            attached->recorder_ = recorder;
            copy = attached.release();
        });
    if (copy == nullptr && recorder != nullptr)
    {
        recorder->reportError(nvinfer1::ErrorCode::kFAILED_ALLOCATION, wpk_last_error());
    }
    return copy;
}

const nvinfer1::PluginFieldCollection* KernelPlugin::getFieldsToSerialize() noexcept
{
    const auto status = guarded(
        [&]
        {
            const std::vector<std::byte>& bytes = operator_->bytes();
            const std::string& id = operator_->id();
            fields_ = {{spec_field, bytes.data(), nvinfer1::PluginFieldType::kUNKNOWN,
                           static_cast<std::int32_t>(bytes.size())},
                {id_field, id.data(), nvinfer1::PluginFieldType::kCHAR, static_cast<std::int32_t>(id.size())}};
            collection_ = {static_cast<std::int32_t>(fields_.size()), fields_.data()};
        });
    return status == 0 ? &collection_ : nullptr;
}

} // namespace wpk
