// Makes WpkKernel of fields; and what TensorRT looks for in a library of plugins (getCreators).
#include <cstdio>
#include <cstring>

#include "plugins/core/error.hpp"
#include "plugins/tensorrt/creator.hpp"
#include "plugins/tensorrt/last_error.hpp"

namespace wpk
{
namespace
{

const nvinfer1::PluginField& find_field(const nvinfer1::PluginFieldCollection* given, const char* name)
{
    const std::int32_t count = given != nullptr ? given->nbFields : 0;
    for (std::int32_t i = 0; i < count; ++i)
    {
        const nvinfer1::PluginField& field = given->fields[i];
        if (field.name != nullptr && std::strcmp(field.name, name) == 0)
        {
            if (field.data == nullptr || field.length < 1)
            {
                break;
            }
            return field;
        }
    }
    throw Error(Code::damaged,
        std::string("the field '") + name + "' is missing or empty; fix: give the plugin what wpk wrote");
}

// Bytes as they come from an engine (kUNKNOWN), from an ONNX tensor (kINT8) or text (kCHAR).
void require_bytes(const nvinfer1::PluginField& field)
{
    using nvinfer1::PluginFieldType;
    if (field.type != PluginFieldType::kUNKNOWN && field.type != PluginFieldType::kINT8
        && field.type != PluginFieldType::kCHAR)
    {
        throw Error(Code::damaged, std::string("the field '") + field.name + "' is of type "
                                       + std::to_string(static_cast<int>(field.type))
                                       + ", bytes are expected; fix: give the plugin what wpk wrote");
    }
}

std::vector<std::byte> bytes_of(const nvinfer1::PluginField& field)
{
    require_bytes(field);
    const auto* data = static_cast<const std::byte*>(field.data);
    return {data, data + field.length};
}

// ONNX's parser counts the NUL behind a text.
std::string text_of(const nvinfer1::PluginField& field)
{
    require_bytes(field);
    const auto* data = static_cast<const char*>(field.data);
    return {data, strnlen(data, static_cast<std::size_t>(field.length))};
}

} // namespace

KernelPluginCreator::KernelPluginCreator()
    : fields_{nvinfer1::PluginField{spec_field, nullptr, nvinfer1::PluginFieldType::kUNKNOWN, 0},
          nvinfer1::PluginField{id_field, nullptr, nvinfer1::PluginFieldType::kCHAR, 0}}
{
    collection_ = {static_cast<std::int32_t>(fields_.size()), fields_.data()};
}

nvinfer1::IPluginV3* KernelPluginCreator::createPlugin(
    const char*, const nvinfer1::PluginFieldCollection* given, nvinfer1::TensorRTPhase) noexcept
{
    try
    {
        auto kernels = std::make_shared<const KernelOperator>(
            bytes_of(find_field(given, spec_field)), text_of(find_field(given, id_field)));
        return new KernelPlugin(std::move(kernels));
    }
    catch (...)
    {
        // There is no error recorder yet, and the logger's layout differs between TensorRT's majors.
        std::fprintf(stderr, "%s\n", keep_exception());
        return nullptr;
    }
}

const nvinfer1::PluginFieldCollection* KernelPluginCreator::getFieldNames() noexcept
{
    return &collection_;
}

const char* KernelPluginCreator::getPluginName() const noexcept
{
    return plugin_name;
}

const char* KernelPluginCreator::getPluginVersion() const noexcept
{
    return plugin_version;
}

const char* KernelPluginCreator::getPluginNamespace() const noexcept
{
    return plugin_namespace;
}

} // namespace wpk

extern "C" __attribute__((visibility("default"))) nvinfer1::IPluginCreatorInterface* const* getCreators(
    std::int32_t& count) noexcept
{
    static wpk::KernelPluginCreator creator;
    static nvinfer1::IPluginCreatorInterface* const creators[] = {&creator};
    count = 1;
    return creators;
}

// TensorRT calls it before getCreators. Nothing is logged: the finder's layout differs between majors.
extern "C" __attribute__((visibility("default"))) void setLoggerFinder(nvinfer1::ILoggerFinder*) noexcept {}
