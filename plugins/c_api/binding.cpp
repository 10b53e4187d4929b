#include "plugins/c_api/binding.hpp"

#include "plugins/c_api/checked_sizes.hpp"
#include "plugins/c_api/reach.hpp"

namespace wpk
{
namespace
{

// Where each value begins.
class ValueAddresses
{
public:
    ValueAddresses(const PlanSpec& plan, const Layout& arena, std::uint64_t arena_begin, const Dims& dims)
        : plan_(plan), starts_(arena.offsets), ends_(ends_of_buffers(plan, dims))
    {
        for (std::uint64_t& start : starts_)
        {
            start += arena_begin;
        }
        for (const PlanSpec::Value& value : plan.values)
        {
            const std::int64_t room = ends_[value.buffer];
            if (sum(value.offset, footprint(value, dims), "'" + value.name + "'") > room)
            {
                throw Error(Code::damaged, "'" + value.name + "' does not lie in its buffer of " + std::to_string(room)
                                               + " bytes; fix: write the plan again: wpk optimize");
            }
        }
    }

    std::uint64_t at(std::uint32_t number) const
    {
        const PlanSpec::Value& value = plan_.values[number];
        return starts_[value.buffer] + static_cast<std::uint64_t>(value.offset);
    }

    // Let the caller's memory take the place of a port's buffer.
    void replace(const SizedPort& port, std::uint64_t address)
    {
        starts_[port.value->buffer] = address - static_cast<std::uint64_t>(port.value->offset);
        ends_[port.value->buffer] = port.value->offset + static_cast<std::int64_t>(port.bytes);
    }

    // Where each buffer ends, from where it begins.
    const std::vector<std::int64_t>& ends() const noexcept
    {
        return ends_;
    }

private:
    const PlanSpec& plan_;
    std::vector<std::uint64_t> starts_;
    std::vector<std::int64_t> ends_;
};

Addresses of_step(const PlanSpec& plan, std::size_t number, const Layouts& layouts, const Places& places,
    const ValueAddresses& values)
{
    const PlanSpec::Step& step = plan.steps[number];
    Addresses addresses;
    for (const PlanSpec::Operand& operand : step.inputs)
    {
        addresses.inputs.push_back(operand.is_weight ? places.weights[operand.number] : values.at(operand.number));
    }
    for (const std::uint32_t value : step.outputs)
    {
        addresses.outputs.push_back(values.at(value));
    }
    addresses.workspace = places.workspace + layouts.workspace.offsets[number];
    addresses.counters = places.counters + layouts.counters.offsets[number];
    return addresses;
}

void copy_all(CUstream stream, const std::vector<Copy>& copies)
{
    for (const Copy& copy : copies)
    {
        require(driver().cuMemcpyDtoDAsync(copy.target, copy.source, copy.bytes, stream), "copy memory");
    }
}

} // namespace

Binding bind_plan(const PlanSpec& plan, const LoadedWork& loaded, const Layouts& layouts, const Places& places,
    const std::vector<SizedPort>& ports, const std::vector<std::uint64_t>& addresses, const Dims& dims)
{
    ValueAddresses values(plan, layouts.arena, places.arena, dims);
    Binding binding;
    for (std::size_t i = 0; i < ports.size(); ++i)
    {
        if (ports[i].is_replaceable)
        {
            values.replace(ports[i], addresses[i]);
            continue;
        }
        const PlanSpec::Port& port = i < plan.inputs.size() ? plan.inputs[i] : plan.outputs[i - plan.inputs.size()];
        const std::uint64_t inside = values.at(port.value);
        if (ports[i].is_output)
        {
            binding.after.push_back({inside, addresses[i], ports[i].bytes});
        }
        else
        {
            binding.before.push_back({addresses[i], inside, ports[i].bytes});
        }
    }
    std::vector<std::size_t> ends;
    for (std::size_t number = 0; number < plan.steps.size(); ++number)
    {
        check_reach(plan.steps[number], rooms_of(plan, plan.steps[number], values.ends()), dims);
        std::vector<std::size_t> before;
        for (const std::uint32_t other : plan.steps[number].predecessors)
        {
            before.push_back(ends[other]);
        }
        const Addresses places_of_step = of_step(plan, number, layouts, places, values);
        const auto add = [&](BoundWork piece)
        {
            binding.work.predecessors.push_back(before);
            before = {binding.work.pieces.size()};
            binding.work.pieces.push_back(std::move(piece));
        };
        if (const auto call = loaded.calls.find(number); call != loaded.calls.end())
        {
            add(BoundCall{call->second.get(), places_of_step});
        }
        for (const Launch& launch : launches_of(plan.steps[number].work))
        {
            add(BoundLaunch(launch, loaded.kernels.at(launch.kernel), places_of_step, dims));
        }
        ends.push_back(binding.work.pieces.size() - 1);
    }
    return binding;
}

void put_on(CUstream stream, const Binding& binding)
{
    copy_all(stream, binding.before);
    put_in_order(stream, binding.work);
    copy_all(stream, binding.after);
}

} // namespace wpk
