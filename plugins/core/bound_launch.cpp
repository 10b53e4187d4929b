#include <algorithm>
#include <limits>
#include <string>

#include "plugins/core/error.hpp"
#include "plugins/core/launcher.hpp"
#include "plugins/core/tensor_map.hpp"

namespace wpk
{
namespace
{

constexpr std::uint64_t counter_size = sizeof(std::int32_t);
constexpr std::int64_t most_grid[] = {std::numeric_limits<std::int32_t>::max(), 65535, 65535};
constexpr std::uint32_t most_attributes = 3;

std::uint64_t asked_of(const Expression& expression, const Dims& dims)
{
    const std::int64_t size = evaluate(expression, dims);
    if (size < 0)
    {
        throw Error(Code::invalid_argument,
            "a launch asks for " + std::to_string(size) + " bytes or counters; fix: write the plan again with wpk");
    }
    return static_cast<std::uint64_t>(size);
}

// The most that any launch asks for through arguments of a kind, of which `size` is a field.
template <typename Asking>
std::uint64_t most(const std::vector<Launch>& launches, const Dims& dims, Expression Asking::* size)
{
    std::uint64_t result = 0;
    for (const Launch& launch : launches)
    {
        for (const Argument& argument : launch.arguments)
        {
            if (const auto* asking = std::get_if<Asking>(&argument))
            {
                result = std::max(result, asked_of(asking->*size, dims));
            }
        }
    }
    return result;
}

std::uint32_t grid_of(const Expression& expression, const Dims& dims, std::size_t axis)
{
    const std::int64_t blocks = evaluate(expression, dims);
    if (blocks < 1 || blocks > most_grid[axis])
    {
        throw Error(Code::invalid_argument, "a grid has " + std::to_string(blocks) + " blocks along axis "
                                                + std::to_string(axis) + ", 1 to " + std::to_string(most_grid[axis])
                                                + " are allowed; fix: use smaller tensors");
    }
    return static_cast<std::uint32_t>(blocks);
}

std::int32_t int32_of(const Expression& expression, const Dims& dims)
{
    const std::int64_t value = evaluate(expression, dims);
    if (value != static_cast<std::int32_t>(value))
    {
        throw Error(Code::invalid_argument,
            "a kernel is given " + std::to_string(value)
                + ", which is no int32; fix: make the model's tensors smaller than 2^31 elements");
    }
    return static_cast<std::int32_t>(value);
}

// A parameter's bytes, at a place that does not move.
union Parameter
{
    TensorMapDescriptor map;
    std::uint64_t pointer;
    std::int32_t size;
};

std::uint64_t operand_at(const std::vector<std::uint64_t>& operands, std::uint32_t index, const char* what)
{
    if (index >= operands.size())
    {
        throw Error(Code::invalid_argument, std::string("a launch takes ") + what + " " + std::to_string(index)
                                                + ", and addresses of " + std::to_string(operands.size())
                                                + " are given; fix: give one for each operand");
    }
    return operands[index];
}

// Where a pointer of a launch is found among its operator's addresses.
std::uint64_t address_of(const Argument& argument, const Addresses& addresses)
{
    if (const auto* input = std::get_if<InputArgument>(&argument))
    {
        return operand_at(addresses.inputs, input->index, "input");
    }
    if (const auto* output = std::get_if<OutputArgument>(&argument))
    {
        return operand_at(addresses.outputs, output->index, "output");
    }
    return std::holds_alternative<WorkspaceArgument>(argument) ? addresses.workspace : addresses.counters;
}

TensorMapDescriptor encoded(const SizedTensorMap& map, std::uint64_t address)
{
    if (address % map_alignment != 0)
    {
        throw Error(Code::invalid_argument,
            "input " + std::to_string(map.input()) + " begins at address " + std::to_string(address) + ", multiples of "
                + std::to_string(map_alignment) + " are allowed; fix: align the memory that is given");
    }
    TensorMapDescriptor descriptor{};
    require(map.encode(address, descriptor), "make a tensor map");
    return descriptor;
}

} // namespace

const std::vector<Launch>& launches_of(const Work& work) noexcept
{
    static const std::vector<Launch> none;
    const auto* launches = std::get_if<std::vector<Launch>>(&work);
    return launches != nullptr ? *launches : none;
}

std::uint64_t workspace_bytes(const Work& work, const Dims& dims)
{
    const auto* call = std::get_if<LibraryCall>(&work);
    return call != nullptr ? call->workspace_bytes : most(launches_of(work), dims, &WorkspaceArgument::bytes);
}

std::uint64_t counter_bytes(const Work& work, const Dims& dims)
{
    const std::uint64_t count = most(launches_of(work), dims, &CounterArgument::count);
    if (count > std::numeric_limits<std::uint32_t>::max())
    {
        throw Error(Code::invalid_argument,
            "a launch asks for " + std::to_string(count) + " counters; fix: write the plan again with wpk");
    }
    return count * counter_size;
}

struct BoundLaunch::State
{
    struct Map
    {
        std::size_t parameter;
        SizedTensorMap sized;
        std::uint64_t address;
    };

    CUkernel kernel = nullptr;
    decltype(Driver::cuLaunchKernelEx) start = nullptr;
    LaunchConfiguration configuration{};
    LaunchAttribute attributes[most_attributes]{};
    std::vector<Argument> arguments;
    std::vector<Parameter> parameters;
    std::vector<void*> places;
    std::vector<Map> maps;

    void add_attributes(const Launch& launch)
    {
        std::uint32_t count = 0;
        if ((launch.attributes & early_launch) != 0)
        {
            LaunchAttribute& attribute = attributes[count++];
            attribute.id = attribute_programmatic_serialization;
            attribute.value.programmatic_serialization = 1;
        }
        if ((launch.attributes & cooperative) != 0)
        {
            LaunchAttribute& attribute = attributes[count++];
            attribute.id = attribute_cooperative;
            attribute.value.cooperative = 1;
        }
        const auto& cluster = launch.cluster;
        if (cluster != std::array<std::uint32_t, 3>{1, 1, 1})
        {
            LaunchAttribute& attribute = attributes[count++];
            attribute.id = attribute_cluster;
            attribute.value.cluster = {cluster[0], cluster[1], cluster[2]};
        }
        configuration.attributes = attributes;
        configuration.attribute_count = count;
    }

    void add(const Argument& argument, const Addresses& addresses, const Dims& dims)
    {
        Parameter parameter{};
        if (const auto* size = std::get_if<SizeArgument>(&argument))
        {
            parameter.size = int32_of(size->value, dims);
        }
        else if (const auto* map = std::get_if<TensorMapArgument>(&argument))
        {
            maps.push_back({parameters.size(), SizedTensorMap(*map, dims), 0});
            maps.back().address = operand_at(addresses.inputs, map->index, "input");
            parameter.map = encoded(maps.back().sized, maps.back().address);
        }
        else
        {
            parameter.pointer = address_of(argument, addresses);
        }
        parameters.push_back(parameter);
    }
};

BoundLaunch::BoundLaunch(const Launch& launch, CUkernel kernel, const Addresses& addresses, const Dims& dims)
    : state_(std::make_unique<State>())
{
    state_->kernel = kernel;
    state_->start = driver().cuLaunchKernelEx; // here, where a driver that is missing may be thrown
    LaunchConfiguration& configuration = state_->configuration;
    for (std::size_t axis = 0; axis < launch.grid.size(); ++axis)
    {
        configuration.grid[axis] = grid_of(launch.grid[axis], dims, axis);
        configuration.block[axis] = launch.block[axis];
    }
    configuration.shared_bytes = launch.shared_bytes;
    state_->add_attributes(launch);
    state_->arguments = launch.arguments;
    state_->parameters.reserve(launch.arguments.size());
    for (const Argument& argument : launch.arguments)
    {
        state_->add(argument, addresses, dims);
    }
    state_->places.reserve(state_->parameters.size());
    for (Parameter& parameter : state_->parameters)
    {
        state_->places.push_back(&parameter);
    }
}

BoundLaunch::BoundLaunch(BoundLaunch&&) noexcept = default;
BoundLaunch& BoundLaunch::operator=(BoundLaunch&&) noexcept = default;
BoundLaunch::~BoundLaunch() = default;

void BoundLaunch::move_to(const Addresses& addresses)
{
    for (State::Map& map : state_->maps)
    {
        const std::uint64_t address = operand_at(addresses.inputs, map.sized.input(), "input");
        if (address != map.address)
        {
            state_->parameters[map.parameter].map = encoded(map.sized, address);
            map.address = address;
        }
    }
    for (std::size_t number = 0; number < state_->arguments.size(); ++number)
    {
        const Argument& argument = state_->arguments[number];
        if (!std::holds_alternative<SizeArgument>(argument) && !std::holds_alternative<TensorMapArgument>(argument))
        {
            state_->parameters[number].pointer = address_of(argument, addresses);
        }
    }
}

CUresult BoundLaunch::enqueue(CUstream stream) const noexcept
{
    LaunchConfiguration configuration = state_->configuration;
    configuration.stream = stream;
    // The driver takes a kernel in a function's place, and finds the function of the stream's context.
    return state_->start(&configuration, reinterpret_cast<CUfunction>(state_->kernel), state_->places.data(), nullptr);
}

} // namespace wpk
