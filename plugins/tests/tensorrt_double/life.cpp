#include "plugins/tests/tensorrt_double/life.hpp"

#include <cstddef>
#include <cstring>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/error.hpp"
#include "plugins/tensorrt/creator.hpp"
#include "plugins/tests/allocations.hpp"
#include "plugins/tests/tensorrt_double/context.hpp"
#include "plugins/tests/tensorrt_double/expectations.hpp"
#include "plugins/tests/tensorrt_double/shapes.hpp"

namespace wpk_test
{

namespace
{

constexpr std::int64_t batch = 3;

using Plugin = std::unique_ptr<IPluginV3>;

IPluginV3OneBuild& build_of(IPluginV3& plugin)
{
    return *static_cast<IPluginV3OneBuild*>(plugin.getCapabilityInterface(PluginCapabilityType::kBUILD));
}

IPluginV3OneRuntime& runtime_of(IPluginV3& plugin)
{
    return *static_cast<IPluginV3OneRuntime*>(plugin.getCapabilityInterface(PluginCapabilityType::kRUNTIME));
}

} // namespace

Life::Life(const std::vector<char>& bytes, const std::string& id) : id_(id), bytes_(bytes)
{
    spec_ = wpk::read_operator(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
    for (std::size_t i = 0; i < spec_.dimensions.size(); ++i)
    {
        dims_.push_back(batch);
    }
    for (const auto* tensors : {&spec_.inputs, &spec_.outputs})
    {
        for (const wpk::Tensor& tensor : *tensors)
        {
            DynamicPluginTensorDesc each{};
            std::uint64_t size = wpk::bytes_of(tensor.type);
            each.desc.type = wpk::type_of(tensor.type);
            each.desc.dims.nbDims = static_cast<std::int32_t>(tensor.shape.size());
            for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis)
            {
                each.desc.dims.d[axis] = wpk::evaluate(tensor.shape[axis], dims_);
                size *= static_cast<std::uint64_t>(each.desc.dims.d[axis]);
            }
            each.min = each.max = each.desc.dims;
            tensors_.push_back(each);
            memory_.push_back(std::make_unique<Memory>(size));
            other_memory_.push_back(std::make_unique<Memory>(size));
        }
    }
}

std::vector<std::uint64_t> Life::live()
{
    sums_.clear();
    wpk::KernelPluginCreator creator;
    const PluginField fields[] = {
        {"spec", bytes_.data(), PluginFieldType::kUNKNOWN, static_cast<std::int32_t>(bytes_.size())},
        {"id", id_.data(), PluginFieldType::kCHAR, static_cast<std::int32_t>(id_.size())}};
    const PluginFieldCollection given{2, fields};
    const Plugin made(creator.createPlugin("operator", &given, TensorRTPhase::kBUILD));
    accept(made != nullptr);
    const Plugin plugin(made->clone());
    accept(plugin != nullptr);
    const std::int32_t tactic = build(*plugin);
    const PluginFieldCollection* serialized = runtime_of(*plugin).getFieldsToSerialize();
    accept(serialized != nullptr);
    const Plugin loaded(creator.createPlugin("operator", serialized, TensorRTPhase::kRUNTIME));
    accept(loaded != nullptr);
    execute(*loaded, tactic);
    return sums_;
}

std::int32_t Life::inputs() const
{
    return static_cast<std::int32_t>(spec_.inputs.size());
}

std::int32_t Life::outputs() const
{
    return static_cast<std::int32_t>(spec_.outputs.size());
}

// Every variant's formats, one after the other; the last tactic that was timed.
std::int32_t Life::build(IPluginV3& plugin)
{
    IPluginV3OneBuild& build = build_of(plugin);
    check_shapes(build);
    std::int32_t last = 0;
    for (const wpk::Variant& variant : spec_.variants)
    {
        for (std::size_t i = 0; i < tensors_.size(); ++i)
        {
            tensors_[i].desc.format = wpk::format_of(variant.formats[i]);
            accept(build.supportsFormatCombination(static_cast<std::int32_t>(i), tensors_.data(), inputs(), outputs()));
        }
        const DynamicPluginTensorDesc* behind = tensors_.data() + inputs();
        accept(build.configurePlugin(tensors_.data(), inputs(), behind, outputs()) == 0);
        workspace_ = build.getWorkspaceSize(tensors_.data(), inputs(), behind, outputs());
        const Undisturbed none;
        std::vector<std::int32_t> tactics(static_cast<std::size_t>(build.getNbTactics()));
        require(!tactics.empty(), "a format that is supported has tactics");
        require(build.getValidTactics(tactics.data(), build.getNbTactics()) == 0, "the tactics are told");
        for (const std::int32_t tactic : tactics)
        {
            last = tactic;
            run(runtime_of(plugin), tactic, memory_);
        }
    }
    require(build.getTimingCacheID() != nullptr && std::strlen(build.getTimingCacheID()) > 0, "timings have an id");
    require(build.getFormatCombinationLimit() >= 1, "formats are tried");
    require(std::strlen(build.getMetadataString()) > 0, "it describes itself");
    return last;
}

void Life::check_shapes(IPluginV3OneBuild& build)
{
    Builder builder;
    std::vector<DataType> types(spec_.outputs.size()), read(spec_.inputs.size());
    std::vector<DimsExprs> shapes(spec_.outputs.size()), given(spec_.inputs.size());
    for (std::size_t i = 0; i < given.size(); ++i)
    {
        read[i] = tensors_[i].desc.type;
        given[i].nbDims = tensors_[i].desc.dims.nbDims;
        for (std::int32_t axis = 0; axis < given[i].nbDims; ++axis)
        {
            given[i].d[axis] = builder.constant(tensors_[i].desc.dims.d[axis]);
        }
    }
    accept(build.getNbOutputs() == outputs());
    accept(build.getOutputDataTypes(types.data(), outputs(), read.data(), inputs()) == 0);
    accept(build.getOutputShapes(given.data(), inputs(), nullptr, 0, shapes.data(), outputs(), builder.itself()) == 0);
    for (std::size_t i = 0; i < shapes.size(); ++i)
    {
        const PluginTensorDesc& expected = tensors_[spec_.inputs.size() + i].desc;
        require(types[i] == expected.type && shapes[i].nbDims == expected.dims.nbDims, "an output's type and rank");
        for (std::int32_t axis = 0; axis < shapes[i].nbDims; ++axis)
        {
            require(shapes[i].d[axis]->getConstantValue() == expected.dims.d[axis], "an output's extent");
        }
    }
}

void Life::run(IPluginV3OneRuntime& runtime, std::int32_t tactic, const AllMemory& memory)
{
    std::vector<PluginTensorDesc> descriptions;
    std::vector<const void*> read;
    std::vector<void*> written;
    {
        const Undisturbed none;
        for (std::size_t i = 0; i < tensors_.size(); ++i)
        {
            descriptions.push_back(tensors_[i].desc);
            (i < spec_.inputs.size() ? read.push_back(memory[i]->get()) : written.push_back(memory[i]->get()));
        }
    }
    const PluginTensorDesc* behind = descriptions.data() + inputs();
    const Memory workspace(workspace_);
    accept(runtime.setTactic(tactic) == 0);
    accept(runtime.onShapeChange(descriptions.data(), inputs(), behind, outputs()) == 0);
    const long before = allocations_left;
    accept(runtime.enqueue(descriptions.data(), behind, read.data(), written.data(), workspace.get(), nullptr) == 0);
    require(before == allocations_left, "an execution allocates nothing");
    wpk::require(wpk::driver().cuStreamSynchronize(nullptr), "finish");
    const Undisturbed none;
    for (std::size_t i = spec_.inputs.size(); i < tensors_.size(); ++i)
    {
        sums_.push_back(memory[i]->sum());
    }
}

void Life::execute(IPluginV3& loaded, std::int32_t tactic)
{
    const Context context;
    const Plugin attached(runtime_of(loaded).attachToContext(const_cast<Context*>(&context)));
    accept(attached != nullptr);
    const Plugin second(runtime_of(loaded).attachToContext(const_cast<Context*>(&context)));
    accept(second != nullptr);
    run(runtime_of(*attached), tactic, memory_);
    run(runtime_of(*attached), tactic, other_memory_); // at other addresses
    run(runtime_of(*second), tactic, memory_);
    const std::int32_t errors = context.recorder.getNbErrors();
    require(errors == 0, "nothing is reported while all goes well");
    const long left = allocations_left;
    allocations_left = -1;
    require(runtime_of(*attached).setTactic(1000) != 0 && context.recorder.getNbErrors() == errors + 1,
        "what is wrong in a context is told to its recorder");
    allocations_left = left;
}

} // namespace wpk_test
