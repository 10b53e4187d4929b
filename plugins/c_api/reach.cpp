#include "plugins/c_api/reach.hpp"

#include <string>

#include "plugins/c_api/checked_sizes.hpp"
#include "plugins/libraries/libraries.hpp"

namespace wpk
{
namespace
{

void require_fits(const std::string& operand, std::int64_t reach, std::int64_t room)
{
    if (reach > room)
    {
        throw Error(Code::damaged, "it reaches " + std::to_string(reach) + " bytes far from where its " + operand
                                       + " begins, " + std::to_string(room)
                                       + " are there; fix: write the plan again: wpk optimize");
    }
}

std::int64_t reach_of(const TensorMapArgument& map, const Dims& dims)
{
    const std::string what = "a tensor map of the plan";
    std::int64_t reach = product(evaluate(map.shape.at(0), dims), map.element_bytes, what);
    for (std::size_t axis = 0; axis < map.strides.size(); ++axis)
    {
        const std::int64_t last = sum(evaluate(map.shape.at(axis + 1), dims), -1, what);
        reach = sum(reach, product(last, evaluate(map.strides[axis], dims), what), what);
    }
    return reach;
}

std::int64_t reach_of(const TensorReach& tensor)
{
    const std::string what = "a tensor of a library's call";
    std::int64_t elements = 1;
    for (std::size_t axis = 0; axis < tensor.dims.size(); ++axis)
    {
        elements = sum(elements, product(tensor.dims[axis] - 1, tensor.strides[axis], what), what);
    }
    return product(elements, tensor.element_bytes, what);
}

void check_call(const LibraryCall& call, const Rooms& rooms)
{
    const std::vector<TensorReach> tensors = tensors_of(call);
    if (tensors.size() != call.inputs.size() + 1 || rooms.outputs.size() != 1)
    {
        throw Error(Code::damaged, "it has " + std::to_string(call.inputs.size()) + " inputs and "
                                       + std::to_string(rooms.outputs.size()) + " outputs, its recipe "
                                       + std::to_string(tensors.size())
                                       + " tensors, of which one is written; fix: write the plan again: wpk optimize");
    }
    for (std::size_t number = 0; number < call.inputs.size(); ++number)
    {
        const std::uint32_t input = call.inputs[number];
        require_fits("input " + std::to_string(input), reach_of(tensors[number]), rooms.inputs.at(input));
    }
    require_fits("output", reach_of(tensors.back()), rooms.outputs[0]);
}

void check_launches(const std::vector<Launch>& launches, const Rooms& rooms, const Dims& dims)
{
    for (const Launch& launch : launches)
    {
        for (const Argument& argument : launch.arguments)
        {
            if (const auto* map = std::get_if<TensorMapArgument>(&argument))
            {
                const std::string operand = "input " + std::to_string(map->index);
                require_fits(operand, reach_of(*map, dims), rooms.inputs.at(map->index));
            }
        }
    }
}

} // namespace

std::vector<std::int64_t> ends_of_buffers(const PlanSpec& plan, const Dims& dims)
{
    std::vector<std::int64_t> ends;
    for (const Expression& bytes : plan.buffers)
    {
        ends.push_back(evaluate(bytes, dims));
    }
    return ends;
}

Rooms rooms_of(const PlanSpec& plan, const PlanSpec::Step& step, const std::vector<std::int64_t>& ends)
{
    const auto room = [&](std::uint32_t number)
    {
        const PlanSpec::Value& value = plan.values[number];
        const std::int64_t end = ends[value.buffer];
        if (value.offset < 0 || value.offset > end)
        {
            throw Error(Code::damaged, "'" + value.name + "' begins at byte " + std::to_string(value.offset)
                                           + " of a buffer of " + std::to_string(end)
                                           + "; fix: write the plan again: wpk optimize");
        }
        return end - value.offset;
    };
    Rooms rooms;
    for (const PlanSpec::Operand& operand : step.inputs)
    {
        const std::uint32_t number = operand.number;
        rooms.inputs.push_back(
            operand.is_weight ? static_cast<std::int64_t>(plan.weights[number].bytes) : room(number));
    }
    for (const std::uint32_t value : step.outputs)
    {
        rooms.outputs.push_back(room(value));
    }
    return rooms;
}

void check_reach(const PlanSpec::Step& step, const Rooms& rooms, const Dims& dims)
{
    try
    {
        if (const auto* call = std::get_if<LibraryCall>(&step.work))
        {
            check_call(*call, rooms);
            return;
        }
        check_launches(std::get<std::vector<Launch>>(step.work), rooms, dims);
    }
    catch (const Error& error)
    {
        throw Error(error.code(), "step '" + step.name + "' of the plan: " + error.what());
    }
}

} // namespace wpk
