// Takes the plugin library through the registry of a real TensorRT library, e.g. libnvinfer_lean.so.11, without a GPU.
//
//   drive_registry TENSORRT PLUGINS SPEC ID [REFUSED_SPEC]...
//   drive_registry TENSORRT PLUGINS --runtime
//   drive_registry TENSORRT PLUGINS --static
//
// With --runtime a runtime is made, which takes a GPU, and the plugins are loaded into its own registry. With
// --static the plugins are only opened, and register themselves.
//
// The spec is created in both phases, cloned, serialized, and created again of the serialized fields; the refused ones
// must give null and a reason. A line for each fact; exit status 1 at the first that is wrong.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <NvInferRuntime.h>
#include <dlfcn.h>

namespace
{

using namespace nvinfer1;

void require(bool holds, const std::string& what)
{
    std::printf("%s: %s\n", holds ? "ok" : "WRONG", what.c_str());
    std::fflush(stdout);
    if (!holds)
    {
        std::exit(1);
    }
}

template <typename Function>
Function symbol(void* library, const char* name)
{
    void* found = dlsym(library, name);
    require(found != nullptr, std::string("the library has ") + name);
    return reinterpret_cast<Function>(found);
}

std::vector<char> contents(const char* path)
{
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// A copy of fields, since a plugin's are its own.
struct Fields
{
    explicit Fields(const PluginFieldCollection& given)
    {
        for (std::int32_t i = 0; i < given.nbFields; ++i)
        {
            const PluginField& field = given.fields[i];
            const auto* data = static_cast<const char*>(field.data);
            names.emplace_back(field.name);
            bytes.emplace_back(data, data + field.length);
            types.push_back(field.type);
        }
    }

    PluginFieldCollection collection()
    {
        fields.clear();
        for (std::size_t i = 0; i < names.size(); ++i)
        {
            fields.emplace_back(
                names[i].c_str(), bytes[i].data(), types[i], static_cast<std::int32_t>(bytes[i].size()));
        }
        return {static_cast<std::int32_t>(fields.size()), fields.data()};
    }

    std::vector<std::string> names;
    std::vector<std::vector<char>> bytes;
    std::vector<PluginFieldType> types;
    std::vector<PluginField> fields;
};

PluginFieldCollection made_of(const std::vector<char>& spec, const char* id, std::vector<PluginField>& fields)
{
    fields.clear();
    fields.emplace_back("spec", spec.data(), PluginFieldType::kINT8, static_cast<std::int32_t>(spec.size()));
    fields.emplace_back("id", id, PluginFieldType::kCHAR, static_cast<std::int32_t>(std::strlen(id) + 1));
    return {static_cast<std::int32_t>(fields.size()), fields.data()};
}

using Plugin = std::unique_ptr<IPluginV3>;

void drive(IPluginCreatorV3One& creator, const PluginFieldCollection& fields, TensorRTPhase phase)
{
    const std::string named = phase == TensorRTPhase::kBUILD ? "build" : "runtime";
    const Plugin plugin(creator.createPlugin("operator", &fields, phase));
    require(plugin != nullptr, "created in the " + named + " phase");
    for (const auto type : {PluginCapabilityType::kCORE, PluginCapabilityType::kBUILD, PluginCapabilityType::kRUNTIME})
    {
        require(plugin->getCapabilityInterface(type) != nullptr,
            "it has capability " + std::to_string(static_cast<int>(type)));
    }
    auto* core = static_cast<IPluginV3OneCore*>(plugin->getCapabilityInterface(PluginCapabilityType::kCORE));
    require(std::string(core->getPluginName()) == creator.getPluginName(), "its name is the creator's");
    const Plugin clone(plugin->clone());
    require(clone != nullptr && clone != plugin, "it is cloned");
    auto* runtime = static_cast<IPluginV3OneRuntime*>(clone->getCapabilityInterface(PluginCapabilityType::kRUNTIME));
    const PluginFieldCollection* serialized = runtime->getFieldsToSerialize();
    require(serialized != nullptr && serialized->nbFields == fields.nbFields, "the clone is serialized");
    Fields kept(*serialized);
    const PluginFieldCollection copied = kept.collection();
    const Plugin again(creator.createPlugin("operator", &copied, TensorRTPhase::kRUNTIME));
    require(again != nullptr, "and created again of the serialized fields");
    auto* build = static_cast<IPluginV3OneBuild*>(plugin->getCapabilityInterface(PluginCapabilityType::kBUILD));
    auto* other = static_cast<IPluginV3OneBuild*>(again->getCapabilityInterface(PluginCapabilityType::kBUILD));
    require(std::string(build->getTimingCacheID()) == other->getTimingCacheID(), "with the same id for timings");
    require(build->getNbOutputs() == other->getNbOutputs(), "and as many outputs");
}

class Logger final : public ILogger
{
    void log(Severity severity, const char* text) noexcept override
    {
        if (severity <= Severity::kWARNING)
        {
            std::printf("TensorRT: %s\n", text);
        }
    }
};

int drive_runtime(void* tensorrt, const char* plugins)
{
    Logger logger;
    const auto make = symbol<void* (*)(void*, std::int32_t)>(tensorrt, "createInferRuntime_INTERNAL");
    const std::unique_ptr<IRuntime> runtime(static_cast<IRuntime*>(make(&logger, NV_TENSORRT_VERSION)));
    require(runtime != nullptr, "a runtime is made");
    IPluginRegistry& registry = runtime->getPluginRegistry();
    require(registry.loadLibrary(plugins) != nullptr, "the runtime's registry loads the plugins");
    require(registry.getCreator("WpkKernel", "1", "") != nullptr, "and finds their creator");
    return 0;
}

// A library that registers its creator when it is opened, as `trtexec --staticPlugins` opens it.
int drive_static(void* tensorrt, const char* plugins)
{
    IPluginRegistry* registry = symbol<IPluginRegistry* (*)()>(tensorrt, "getPluginRegistry")();
    require(registry->getCreator("WpkKernel", "1", "") == nullptr, "before, there is no creator");
    const void* opened = dlopen(plugins, RTLD_NOW);
    require(opened != nullptr, opened != nullptr ? "the plugins are opened" : dlerror());
    require(registry->getCreator("WpkKernel", "1", "") != nullptr, "their creator is found");
    return 0;
}

} // namespace

int main(int count, char** words)
{
    require(count >= 4, "there are arguments");
    void* tensorrt = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    require(tensorrt != nullptr, tensorrt != nullptr ? "TensorRT's library is opened" : dlerror());
    std::printf("version: %d\n", symbol<std::int32_t (*)()>(tensorrt, "getInferLibVersion")());
    if (std::string(words[3]) == "--runtime")
    {
        return drive_runtime(tensorrt, words[2]);
    }
    if (std::string(words[3]) == "--static")
    {
        return drive_static(tensorrt, words[2]);
    }
    require(count >= 5, "there is a spec with its id");
    IPluginRegistry* registry = symbol<IPluginRegistry* (*)()>(tensorrt, "getPluginRegistry")();
    const IPluginRegistry::PluginLibraryHandle handle = registry->loadLibrary(words[2]);
    require(handle != nullptr, "the registry loads the plugins");
    std::int32_t creators = 0;
    IPluginCreatorInterface* const* all = registry->getAllCreators(&creators);
    bool is_listed = false;
    for (std::int32_t i = 0; i < creators; ++i)
    {
        const auto* each = static_cast<const IPluginCreatorV3One*>(all[i]);
        is_listed = is_listed || std::string(each->getPluginName()) == "WpkKernel";
    }
    require(is_listed, "its creator is listed");
    auto* creator = static_cast<IPluginCreatorV3One*>(registry->getCreator("WpkKernel", "1", ""));
    require(creator != nullptr, "its creator is found by name, version and namespace");
    require(creator->getFieldNames()->nbFields == 2, "the creator names its fields");

    std::vector<PluginField> fields;
    const std::vector<char> spec = contents(words[3]);
    for (const auto phase : {TensorRTPhase::kBUILD, TensorRTPhase::kRUNTIME})
    {
        drive(*creator, made_of(spec, words[4], fields), phase);
    }
    void* plugins = dlopen(words[2], RTLD_NOW | RTLD_NOLOAD);
    const auto last_error = symbol<const char* (*)()>(plugins, "wpk_last_error");
    for (int i = 5; i < count; ++i)
    {
        const std::vector<char> refused = contents(words[i]);
        const PluginFieldCollection given = made_of(refused, words[4], fields);
        require(
            creator->createPlugin("operator", &given, TensorRTPhase::kRUNTIME) == nullptr, "a wrong spec gives null");
        std::printf("reason: %s\n", last_error());
    }
    const PluginFieldCollection nothing{0, nullptr};
    require(creator->createPlugin("operator", &nothing, TensorRTPhase::kBUILD) == nullptr, "no fields give null");
    dlclose(plugins);
    registry->deregisterLibrary(handle);
    require(registry->getCreator("WpkKernel", "1", "") == nullptr, "deregistered, it is no longer found");
    return 0;
}
