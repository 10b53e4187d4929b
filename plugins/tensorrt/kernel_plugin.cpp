// What TensorRT asks of every plugin: its names, its capabilities, copies of it.
#include "plugins/tensorrt/kernel_plugin.hpp"

#include <set>

#include "plugins/tensorrt/last_error.hpp"

namespace wpk
{

KernelPlugin::KernelPlugin(std::shared_ptr<const KernelOperator> kernels) : operator_(std::move(kernels))
{
    timing_id_ = operator_->id() + "/" + std::to_string(operator_->bytes().size());
    std::set<std::string> entries;
    for (const Kernel& kernel : operator_->spec().kernels)
    {
        entries.insert(kernel.entry);
    }
    metadata_ = operator_->spec().name;
    for (const std::string& entry : entries)
    {
        metadata_ += " " + entry;
    }
}

KernelPlugin::KernelPlugin(const KernelPlugin& other)
    : operator_(other.operator_),
      metadata_(other.metadata_),
      timing_id_(other.timing_id_),
      valid_(other.valid_),
      tactic_(other.tactic_),
      recorder_(other.recorder_)
{
}

void KernelPlugin::tell(const char* text) const noexcept
{
    if (recorder_ != nullptr)
    {
        recorder_->reportError(nvinfer1::ErrorCode::kINTERNAL_ERROR, text);
    }
}

std::int32_t KernelPlugin::tell_exception() const noexcept
{
    tell(keep_exception());
    return failure;
}

nvinfer1::IPluginCapability* KernelPlugin::getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept
{
    switch (type)
    {
    case nvinfer1::PluginCapabilityType::kCORE:
        return static_cast<nvinfer1::IPluginV3OneCore*>(this);
    case nvinfer1::PluginCapabilityType::kBUILD:
        return static_cast<nvinfer1::IPluginV3OneBuild*>(this);
    case nvinfer1::PluginCapabilityType::kRUNTIME:
        return static_cast<nvinfer1::IPluginV3OneRuntime*>(this);
    }
    return nullptr;
}

nvinfer1::IPluginV3* KernelPlugin::clone() noexcept
{
    nvinfer1::IPluginV3* copy = nullptr;
    guarded([&] { copy = new KernelPlugin(*this); });
    return copy;
}

const char* KernelPlugin::getPluginName() const noexcept
{
    return plugin_name;
}

const char* KernelPlugin::getPluginVersion() const noexcept
{
    return plugin_version;
}

const char* KernelPlugin::getPluginNamespace() const noexcept
{
    return plugin_namespace;
}

} // namespace wpk
