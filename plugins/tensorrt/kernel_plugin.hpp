// WpkKernel: an operator with generated kernels as a TensorRT plugin. Its tactics are the variants of its spec.
#pragma once

#include <NvInferRuntime.h>

#include "plugins/tensorrt/bound_operator.hpp"

namespace wpk
{

constexpr const char* plugin_name = "WpkKernel";
constexpr const char* plugin_version = "1";
constexpr const char* plugin_namespace = "";
constexpr const char* spec_field = "spec";
constexpr const char* id_field = "id";

class KernelPlugin final : public nvinfer1::IPluginV3,
                           public nvinfer1::IPluginV3OneCore,
                           public nvinfer1::IPluginV3OneBuild,
                           public nvinfer1::IPluginV3OneRuntime
{
public:
    explicit KernelPlugin(std::shared_ptr<const KernelOperator> kernels);

    nvinfer1::IPluginCapability* getCapabilityInterface(nvinfer1::PluginCapabilityType type) noexcept override;
    nvinfer1::IPluginV3* clone() noexcept override;

    const char* getPluginName() const noexcept override;
    const char* getPluginVersion() const noexcept override;
    const char* getPluginNamespace() const noexcept override;

    std::int32_t configurePlugin(const nvinfer1::DynamicPluginTensorDesc* inputs, std::int32_t input_count,
        const nvinfer1::DynamicPluginTensorDesc* outputs, std::int32_t output_count) noexcept override;
    std::int32_t getOutputDataTypes(nvinfer1::DataType* types, std::int32_t output_count,
        const nvinfer1::DataType* input_types, std::int32_t input_count) const noexcept override;
    std::int32_t getOutputShapes(const nvinfer1::DimsExprs* inputs, std::int32_t input_count,
        const nvinfer1::DimsExprs* shape_inputs, std::int32_t shape_input_count, nvinfer1::DimsExprs* outputs,
        std::int32_t output_count, nvinfer1::IExprBuilder& builder) noexcept override;
    bool supportsFormatCombination(std::int32_t position, const nvinfer1::DynamicPluginTensorDesc* tensors,
        std::int32_t input_count, std::int32_t output_count) noexcept override;
    std::int32_t getNbOutputs() const noexcept override;
    std::size_t getWorkspaceSize(const nvinfer1::DynamicPluginTensorDesc* inputs, std::int32_t input_count,
        const nvinfer1::DynamicPluginTensorDesc* outputs, std::int32_t output_count) const noexcept override;
    std::int32_t getValidTactics(std::int32_t* tactics, std::int32_t count) noexcept override;
    std::int32_t getNbTactics() noexcept override;
    const char* getTimingCacheID() noexcept override;
    std::int32_t getFormatCombinationLimit() noexcept override;
    const char* getMetadataString() noexcept override;

    std::int32_t setTactic(std::int32_t tactic) noexcept override;
    std::int32_t onShapeChange(const nvinfer1::PluginTensorDesc* inputs, std::int32_t input_count,
        const nvinfer1::PluginTensorDesc* outputs, std::int32_t output_count) noexcept override;
    std::int32_t enqueue(const nvinfer1::PluginTensorDesc* input_descriptions,
        const nvinfer1::PluginTensorDesc* output_descriptions, const void* const* inputs, void* const* outputs,
        void* workspace, cudaStream_t stream) noexcept override;
    nvinfer1::IPluginV3* attachToContext(nvinfer1::IPluginResourceContext* context) noexcept override;
    const nvinfer1::PluginFieldCollection* getFieldsToSerialize() noexcept override;

private:
    static constexpr std::int32_t failure = 1;

    // A copy with the same choices, for another network or execution context; memory of the GPU is not shared.
    KernelPlugin(const KernelPlugin& other);

    // What a function does, and 0; where it throws, the reason is told and the answer is not 0.
    template <typename Work>
    std::int32_t guarded(const Work& work) const noexcept
    {
        try
        {
            work();
            return 0;
        }
        catch (...)
        {
            return tell_exception();
        }
    }
    // The reason of the exception that is being handled; returns `failure`.
    std::int32_t tell_exception() const noexcept;
    void tell(const char* text) const noexcept;
    std::vector<std::size_t> variants_for(const std::vector<nvinfer1::TensorFormat>& formats) const;
    // Those of them whose library is here and takes them, where a library computes them.
    std::vector<std::size_t> ready_variants_for(const std::vector<nvinfer1::TensorFormat>& formats) const;

    std::shared_ptr<const KernelOperator> operator_;
    std::string metadata_, timing_id_;
    std::vector<std::size_t> valid_; // variants in the formats of the last configurePlugin
    std::int32_t tactic_ = 0;        // the number of a variant, counted from 1; 0 the first that fits
    std::unique_ptr<BoundOperator> bound_;
    nvinfer1::IErrorRecorder* recorder_ = nullptr;
    std::vector<nvinfer1::PluginField> fields_;
    nvinfer1::PluginFieldCollection collection_{};
};

} // namespace wpk
