// Plays TensorRT's part through its public virtual interfaces, and takes the plugin through its whole life: built,
// cloned, configured in every format, timed with every tactic, serialized, created again, attached, executed.
//
//   drive_plugin SPEC ID [--fail-allocations]
//
// The operator's inputs and outputs are fp32 or 16-bit tensors; it is executed on the driver that WPK_CUDA_DRIVER
// names, or on the GPU. The sum of all bytes of each output is printed. With --fail-allocations the life is repeated
// with an allocator that fails at its first, second, … call: every life but the last must end with a refusal, none in a
// crash.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <NvInferRuntime.h>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/error.hpp"
#include "plugins/tensorrt/creator.hpp"
#include "plugins/tensorrt/last_error.hpp"
#include "plugins/tensorrt/tensors.hpp"

namespace
{

long allocations_left = -1; // below 0: all succeed

} // namespace

void* operator new(std::size_t size)
{
    if (allocations_left == 0)
    {
        throw std::bad_alloc();
    }
    allocations_left -= allocations_left > 0;
    void* memory = std::malloc(size != 0 ? size : 1);
    if (memory == nullptr)
    {
        throw std::bad_alloc();
    }
    return memory;
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

namespace
{

using namespace nvinfer1;

constexpr std::int64_t batch = 3;

// The driver's own work takes no part in the failing of allocations.
class Undisturbed
{
public:
    Undisturbed() : left_(allocations_left)
    {
        allocations_left = -1;
    }

    ~Undisturbed()
    {
        allocations_left = left_;
    }

private:
    long left_;
};

// What stops a life: the plugin refused.
struct Refused
{
};

void require(bool holds, const char* what)
{
    if (!holds)
    {
        const Undisturbed none;
        std::fprintf(stderr, "WRONG: %s; %s\n", what, wpk_last_error());
        std::exit(1);
    }
}

void accept(bool holds)
{
    if (!holds)
    {
        throw Refused();
    }
}

class Recorder final : public IErrorRecorder
{
public:
    std::int32_t getNbErrors() const noexcept override
    {
        return count_;
    }
    ErrorCode getErrorCode(std::int32_t) const noexcept override
    {
        return ErrorCode::kINTERNAL_ERROR;
    }
    ErrorDesc getErrorDesc(std::int32_t) const noexcept override
    {
        return "";
    }
    bool hasOverflowed() const noexcept override
    {
        return false;
    }
    void clear() noexcept override
    {
        count_ = 0;
    }
    bool reportError(ErrorCode, ErrorDesc) noexcept override
    {
        ++count_;
        return true;
    }
    RefCount incRefCount() noexcept override
    {
        return 1;
    }
    RefCount decRefCount() noexcept override
    {
        return 1;
    }

private:
    std::int32_t count_ = 0;
};

class Context final : public IPluginResourceContext
{
public:
    IGpuAllocator* getGpuAllocator() const noexcept override
    {
        return nullptr;
    }
    IErrorRecorder* getErrorRecorder() const noexcept override
    {
        return &recorder;
    }

    mutable Recorder recorder;
};

class Extent final : public apiv::VDimensionExpr, public IDimensionExpr
{
public:
    explicit Extent(std::int64_t value) : value_(value)
    {
        mImpl = this;
    }
    bool isConstant() const override
    {
        return true;
    }
    std::int64_t getConstantValue() const override
    {
        return value_;
    }
    bool isSizeTensor() const override
    {
        return false;
    }

private:
    std::int64_t value_;
};

class Builder final : public apiv::VExprBuilder, public IExprBuilder
{
public:
    Builder()
    {
        mImpl = this;
    }
    const IDimensionExpr* constant(std::int64_t value) override
    {
        const Undisturbed none;
        made_.emplace_back(value);
        return &made_.back();
    }
    const IDimensionExpr* operation(
        DimensionOperation operation, const IDimensionExpr& first, const IDimensionExpr& second) override
    {
        const std::int64_t a = first.getConstantValue(), b = second.getConstantValue();
        switch (operation)
        {
        case DimensionOperation::kSUM:
            return constant(a + b);
        case DimensionOperation::kPROD:
            return constant(a * b);
        case DimensionOperation::kMAX:
            return constant(a > b ? a : b);
        case DimensionOperation::kMIN:
            return constant(a < b ? a : b);
        case DimensionOperation::kSUB:
            return constant(a - b);
        case DimensionOperation::kEQUAL:
            return constant(a == b);
        case DimensionOperation::kLESS:
            return constant(a < b);
        case DimensionOperation::kFLOOR_DIV:
            return constant(a / b);
        case DimensionOperation::kCEIL_DIV:
            return constant((a + b - 1) / b);
        }
        return nullptr;
    }
    const IDimensionExpr* declareSizeTensor(std::int32_t, const IDimensionExpr&, const IDimensionExpr&) override
    {
        return nullptr;
    }
    IExprBuilder& itself()
    {
        return *this;
    }

private:
    std::deque<Extent> made_;
};

// Memory of the GPU, or of its double.
class Memory
{
public:
    explicit Memory(std::uint64_t bytes) : bytes_(bytes + 1)
    {
        const Undisturbed none;
        wpk::require(wpk::driver().cuMemAlloc(&address_, bytes_), "allocate");
        std::vector<std::uint8_t> data(bytes_);
        for (std::size_t i = 0; i < data.size(); ++i)
        {
            data[i] = i % 4 == 3 || i % 2 == 1 ? 0x3C : static_cast<std::uint8_t>(i % 7);
        }
        wpk::require(wpk::driver().cuMemcpyHtoD(address_, data.data(), bytes_), "copy");
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory()
    {
        wpk::driver().cuMemFree(address_);
    }
    void* get() const
    {
        return reinterpret_cast<void*>(address_);
    }
    std::uint64_t sum() const
    {
        const Undisturbed none;
        std::vector<std::uint8_t> data(bytes_);
        wpk::require(wpk::driver().cuMemcpyDtoH(data.data(), address_, bytes_), "copy");
        std::uint64_t sum = 0, place = 1;
        for (const std::uint8_t byte : data)
        {
            sum += byte * (place++ % 251);
        }
        return sum;
    }

private:
    CUdeviceptr address_ = 0;
    std::uint64_t bytes_;
};

using Plugin = std::unique_ptr<IPluginV3>;

class Life
{
public:
    Life(const std::vector<char>& bytes, const std::string& id) : id_(id), bytes_(bytes)
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

    // The sums of the outputs, of each tactic and then of the runtime. Throws Refused.
    std::vector<std::uint64_t> live()
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

private:
    static IPluginV3OneBuild& build_of(IPluginV3& plugin)
    {
        return *static_cast<IPluginV3OneBuild*>(plugin.getCapabilityInterface(PluginCapabilityType::kBUILD));
    }

    static IPluginV3OneRuntime& runtime_of(IPluginV3& plugin)
    {
        return *static_cast<IPluginV3OneRuntime*>(plugin.getCapabilityInterface(PluginCapabilityType::kRUNTIME));
    }

    std::int32_t inputs() const
    {
        return static_cast<std::int32_t>(spec_.inputs.size());
    }

    std::int32_t outputs() const
    {
        return static_cast<std::int32_t>(spec_.outputs.size());
    }

    // Every variant's formats, one after the other; the last tactic that was timed.
    std::int32_t build(IPluginV3& plugin)
    {
        IPluginV3OneBuild& build = build_of(plugin);
        check_shapes(build);
        std::int32_t last = 0;
        for (const wpk::Variant& variant : spec_.variants)
        {
            for (std::size_t i = 0; i < tensors_.size(); ++i)
            {
                tensors_[i].desc.format = wpk::format_of(variant.formats[i]);
                accept(build.supportsFormatCombination(
                    static_cast<std::int32_t>(i), tensors_.data(), inputs(), outputs()));
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

    void check_shapes(IPluginV3OneBuild& build)
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
        accept(
            build.getOutputShapes(given.data(), inputs(), nullptr, 0, shapes.data(), outputs(), builder.itself()) == 0);
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

    using AllMemory = std::vector<std::unique_ptr<Memory>>;

    void run(IPluginV3OneRuntime& runtime, std::int32_t tactic, const AllMemory& memory)
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
        accept(
            runtime.enqueue(descriptions.data(), behind, read.data(), written.data(), workspace.get(), nullptr) == 0);
        require(before == allocations_left, "an execution allocates nothing");
        wpk::require(wpk::driver().cuStreamSynchronize(nullptr), "finish");
        const Undisturbed none;
        for (std::size_t i = spec_.inputs.size(); i < tensors_.size(); ++i)
        {
            sums_.push_back(memory[i]->sum());
        }
    }

    void execute(IPluginV3& loaded, std::int32_t tactic)
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

    const std::string& id_;
    const std::vector<char>& bytes_;
    wpk::OperatorSpec spec_;
    wpk::Dims dims_;
    std::vector<DynamicPluginTensorDesc> tensors_;
    AllMemory memory_, other_memory_;
    std::uint64_t workspace_ = 0;
    std::vector<std::uint64_t> sums_;
};

// Whether a life with so many allocations ends well.
bool lives(Life& life, long allocations)
{
    bool ended_well = true;
    allocations_left = allocations;
    try
    {
        life.live();
    }
    catch (const Refused&)
    {
        ended_well = false;
    }
    catch (const std::bad_alloc&)
    {
        ended_well = false; // of the driver's own
    }
    allocations_left = -1;
    return ended_well;
}

void drive(int count, char** words)
{
    std::puts("This driver is wpk's own: it plays TensorRT's part, and is no proof of working in TensorRT.");
    require(count >= 3, "a spec and its id are given");
    std::ifstream stream(words[1], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const std::string id = words[2];
    CUcontext context = nullptr;
    wpk::require(wpk::driver().cuDevicePrimaryCtxRetain(&context, 0), "take the GPU");
    wpk::require(wpk::driver().cuCtxPushCurrent(context), "take the GPU");
    {
        Life life(bytes, id);
        try
        {
            for (const std::uint64_t sum : life.live())
            {
                std::printf("%llu\n", static_cast<unsigned long long>(sum));
            }
        }
        catch (const Refused&)
        {
            require(false, "the plugin lives");
        }
        if (count > 3)
        {
            long failed = 0;
            while (!lives(life, failed))
            {
                ++failed;
            }
            std::printf("refused at each of %ld allocations\n", failed);
        }
    }
    wpk::driver().cuCtxPopCurrent(&context);
    wpk::driver().cuDevicePrimaryCtxRelease(0);
}

} // namespace

int main(int count, char** words)
{
    try
    {
        drive(count, words);
        return 0;
    }
    catch (const wpk::Error& error)
    {
        require(false, error.what());
    }
}
