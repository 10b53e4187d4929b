// Makes WpkKernel of fields: a spec, and the id that Python gave it.
#pragma once

#include <array>

#include "plugins/tensorrt/kernel_plugin.hpp"

namespace wpk
{

class KernelPluginCreator final : public nvinfer1::IPluginCreatorV3One
{
public:
    KernelPluginCreator();

    // Null where the fields are wrong; wpk_last_error() and the standard error output tell why.
    nvinfer1::IPluginV3* createPlugin(const char* name, const nvinfer1::PluginFieldCollection* given,
        nvinfer1::TensorRTPhase phase) noexcept override;
    const nvinfer1::PluginFieldCollection* getFieldNames() noexcept override;
    const char* getPluginName() const noexcept override;
    const char* getPluginVersion() const noexcept override;
    const char* getPluginNamespace() const noexcept override;

private:
    std::array<nvinfer1::PluginField, 2> fields_;
    nvinfer1::PluginFieldCollection collection_{};
};

} // namespace wpk
