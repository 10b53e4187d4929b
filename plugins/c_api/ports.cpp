#include "plugins/c_api/ports.hpp"

#include <algorithm>

#include "plugins/c_api/checked_sizes.hpp"
#include "plugins/c_api/memory_layout.hpp"

namespace wpk
{
namespace
{

constexpr std::uint64_t port_alignment = 16; // kernels read and write so many bytes at once

// Whether everything in the value's buffer lies within the value.
bool is_alone(const PlanSpec& plan, const PlanSpec::Value& own, const Dims& dims)
{
    const std::int64_t end = own.offset + footprint(own, dims);
    return std::all_of(plan.values.begin(), plan.values.end(),
        [&](const PlanSpec::Value& value)
        {
            return value.buffer != own.buffer
                   || (own.offset <= value.offset && sum(value.offset, footprint(value, dims), value.name) <= end);
        });
}

void require_dense(const PlanSpec& plan, const SizedPort& port, const Dims& dims)
{
    const PlanSpec::Value& value = *port.value;
    const std::int64_t room = within_memory(evaluate(plan.buffers[value.buffer], dims), "a buffer of the plan");
    const std::int64_t bytes = footprint(value, dims);
    if (static_cast<std::uint64_t>(bytes) != port.bytes || value.offset > room || bytes > room - value.offset)
    {
        throw Error(Code::damaged, "'" + value.name + "' takes " + std::to_string(bytes) + " bytes of a buffer of "
                                       + std::to_string(room) + " from " + std::to_string(value.offset) + ", its shape "
                                       + std::to_string(port.bytes) + "; fix: write the plan again: wpk optimize");
    }
}

} // namespace

std::vector<std::int64_t> shape_of(const PlanSpec::Port& port, const Dims& dims)
{
    std::vector<std::int64_t> shape;
    for (const Expression& size : port.shape)
    {
        shape.push_back(evaluate(size, dims));
    }
    return shape;
}

std::uint64_t bytes_of(const PlanSpec& plan, const PlanSpec::Port& port, const Dims& dims)
{
    const PlanSpec::Value& value = plan.values[port.value];
    std::int64_t bytes = bytes_of(value.type);
    for (const std::int64_t size : shape_of(port, dims))
    {
        bytes = product(bytes, size, "'" + value.name + "'");
    }
    return static_cast<std::uint64_t>(within_memory(bytes, "'" + value.name + "'"));
}

std::vector<SizedPort> size_ports(const PlanSpec& plan, const Dims& dims)
{
    std::vector<std::size_t> ports_in(plan.buffers.size());
    std::vector<bool> is_written(plan.buffers.size());
    for (const PlanSpec::Step& step : plan.steps)
    {
        for (const std::uint32_t value : step.outputs)
        {
            is_written[plan.values[value].buffer] = true;
        }
    }
    std::vector<SizedPort> sized;
    for (const auto* ports : {&plan.inputs, &plan.outputs})
    {
        for (const PlanSpec::Port& port : *ports)
        {
            const PlanSpec::Value& value = plan.values[port.value];
            ++ports_in[value.buffer];
            sized.push_back({&value, ports == &plan.outputs, shape_of(port, dims), bytes_of(plan, port, dims), false});
            require_dense(plan, sized.back(), dims);
        }
    }
    for (SizedPort& port : sized)
    {
        const std::uint32_t buffer = port.value->buffer;
        port.is_replaceable =
            ports_in[buffer] == 1 && (port.is_output || !is_written[buffer]) && is_alone(plan, *port.value, dims);
    }
    return sized;
}

void check_addresses(const std::vector<SizedPort>& ports, const std::vector<std::uint64_t>& addresses)
{
    for (std::size_t i = 0; i < ports.size(); ++i)
    {
        const std::string name = "'" + ports[i].value->name + "'";
        if (addresses[i] == 0)
        {
            throw Error(Code::invalid_argument, name + " has no memory; fix: give it some with wpk_bind");
        }
        if (addresses[i] % port_alignment != 0 || addresses[i] > ~ports[i].bytes)
        {
            throw Error(Code::invalid_argument,
                name + " lies at " + std::to_string(addresses[i])
                    + ", expected a multiple of 16; fix: give it an allocation of its own, not a part of another");
        }
        for (std::size_t j = 0; j < i; ++j)
        {
            const std::size_t low = addresses[i] < addresses[j] ? i : j, high = low == i ? j : i;
            if ((ports[i].is_output || ports[j].is_output) && addresses[low] + ports[low].bytes > addresses[high])
            {
                throw Error(Code::invalid_argument,
                    name + " and '" + ports[j].value->name
                        + "' share memory, and a run writes while it reads; fix: give each output memory of its own");
            }
        }
    }
}

} // namespace wpk
