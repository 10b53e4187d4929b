#include "plugins/c_api/memory_layout.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "plugins/c_api/checked_sizes.hpp"
#include "plugins/core/launcher.hpp"

namespace wpk
{
namespace
{

constexpr std::uint64_t alignment = 256;

// A set of steps.
using Bits = std::vector<std::uint64_t>;

void put(Bits& bits, std::size_t step)
{
    bits[step / 64] |= std::uint64_t{1} << step % 64;
}

bool holds(const Bits& bits, std::size_t step)
{
    return (bits[step / 64] >> step % 64 & 1) != 0;
}

bool is_within(const Bits& part, const Bits& whole)
{
    for (std::size_t i = 0; i < part.size(); ++i)
    {
        if ((part[i] & ~whole[i]) != 0)
        {
            return false;
        }
    }
    return true;
}

// For each step those that are done before it begins.
std::vector<Bits> all_before(const PlanSpec& plan)
{
    std::vector<Bits> before(plan.steps.size(), Bits((plan.steps.size() + 63) / 64));
    for (std::size_t step = 0; step < plan.steps.size(); ++step)
    {
        for (const std::uint32_t other : plan.steps[step].predecessors)
        {
            put(before[step], other);
            for (std::size_t i = 0; i < before[step].size(); ++i)
            {
                before[step][i] |= before[other][i];
            }
        }
    }
    return before;
}

using MayShare = std::function<bool(std::size_t, std::size_t)>;

// Largest first, each piece takes the lowest offset where it meets none that it may not share with. `order` names
// the pieces; of equal ones the first is placed first.
Layout place(const std::vector<std::size_t>& order, const std::vector<std::uint64_t>& sizes, const MayShare& may_share)
{
    std::vector<std::size_t> by_size = order;
    std::stable_sort(by_size.begin(), by_size.end(), [&](auto a, auto b) { return sizes[a] > sizes[b]; });
    Layout layout{std::vector<std::uint64_t>(sizes.size()), 0};
    std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
    for (auto piece = by_size.begin(); piece != by_size.end(); ++piece)
    {
        taken.clear();
        for (auto other = by_size.begin(); other != piece; ++other)
        {
            if (!may_share(*piece, *other))
            {
                taken.emplace_back(layout.offsets[*other], layout.offsets[*other] + sizes[*other]);
            }
        }
        std::sort(taken.begin(), taken.end());
        std::uint64_t candidate = 0;
        for (const auto& [begin, end] : taken)
        {
            if (candidate + sizes[*piece] > begin)
            {
                candidate = std::max(candidate, end);
            }
        }
        layout.offsets[*piece] = candidate;
        layout.bytes = std::max(layout.bytes, candidate + sizes[*piece]);
    }
    within_memory(static_cast<std::int64_t>(layout.bytes), "the memory of the plan");
    return layout;
}

struct Touched
{
    bool ever = false, stays = false;
    Bits used, before; // the steps that touch it, and what is done before any of them
};

// Which steps touch each buffer, and in which order wpk/plan/memory.py comes across them.
struct Lives
{
    std::vector<Touched> buffers;
    std::vector<std::size_t> order;
};

Lives lives_of(const PlanSpec& plan, const std::vector<Bits>& before)
{
    const std::size_t words = (plan.steps.size() + 63) / 64;
    Lives lives{std::vector<Touched>(plan.buffers.size()), {}};
    const auto meet = [&](std::uint32_t value) -> Touched&
    {
        const std::uint32_t number = plan.values[value].buffer;
        Touched& buffer = lives.buffers[number];
        if (!buffer.ever)
        {
            buffer = {true, false, Bits(words), Bits(words, ~std::uint64_t{0})};
            lives.order.push_back(number);
        }
        return buffer;
    };
    for (const auto* ports : {&plan.inputs, &plan.outputs})
    {
        for (const PlanSpec::Port& port : *ports)
        {
            meet(port.value).stays = true;
        }
    }
    for (std::size_t step = 0; step < plan.steps.size(); ++step)
    {
        const auto touch = [&](std::uint32_t value)
        {
            Touched& buffer = meet(value);
            put(buffer.used, step);
            for (std::size_t i = 0; i < words; ++i)
            {
                buffer.before[i] &= before[step][i];
            }
        };
        for (const PlanSpec::Operand& operand : plan.steps[step].inputs)
        {
            if (!operand.is_weight)
            {
                touch(operand.number);
            }
        }
        std::for_each(plan.steps[step].outputs.begin(), plan.steps[step].outputs.end(), touch);
    }
    return lives;
}

Layout lay_out_buffers(const PlanSpec& plan, const std::vector<Bits>& before, const Dims& dims)
{
    const Lives lives = lives_of(plan, before);
    std::vector<std::uint64_t> sizes(plan.buffers.size());
    for (const std::size_t number : lives.order)
    {
        const std::string what = "buffer " + std::to_string(number) + " of the plan";
        sizes[number] = aligned(static_cast<std::uint64_t>(within_memory(evaluate(plan.buffers[number], dims), what)));
    }
    return place(lives.order, sizes,
        [&](std::size_t one, std::size_t other)
        {
            const Touched &a = lives.buffers[one], &b = lives.buffers[other];
            return !a.stays && !b.stays && (is_within(a.used, b.before) || is_within(b.used, a.before));
        });
}

// Memory of which each step has a piece that no step uses that may run at the same time.
Layout lay_out_pieces(
    const PlanSpec& plan, const std::vector<Bits>& before, const std::function<std::uint64_t(const Work&)>& asked)
{
    std::vector<std::uint64_t> sizes(plan.steps.size());
    std::vector<std::size_t> order(plan.steps.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (const std::size_t step : order)
    {
        const std::uint64_t bytes = asked(plan.steps[step].work);
        if (bytes > static_cast<std::uint64_t>(most_bytes))
        {
            refuse_size("scratch memory of step '" + plan.steps[step].name + "'");
        }
        sizes[step] = aligned(bytes);
    }
    return place(order, sizes,
        [&](std::size_t one, std::size_t other) { return holds(before[other], one) || holds(before[one], other); });
}

} // namespace

Layouts lay_out(const PlanSpec& plan, const Dims& dims)
{
    const std::vector<Bits> before = all_before(plan);
    return {
        lay_out_buffers(plan, before, dims),
        lay_out_pieces(plan, before, [&](const Work& work) { return workspace_bytes(work, dims); }),
        lay_out_pieces(plan, before, [&](const Work& work) { return counter_bytes(work, dims); }),
    };
}

std::int64_t footprint(const PlanSpec::Value& value, const Dims& dims)
{
    const std::string what = "'" + value.name + "'";
    if (value.extents.size() != value.strides.size() || value.padding < 0 || value.offset < 0)
    {
        throw Error(Code::damaged, what + " does not add up; fix: write the plan again: wpk optimize");
    }
    std::int64_t elements = sum(1, value.padding, what);
    for (std::size_t axis = 0; axis < value.extents.size(); ++axis)
    {
        const std::int64_t extent = evaluate(value.extents[axis], dims), stride = value.strides[axis];
        if (extent < 1 || stride < 0)
        {
            throw Error(Code::damaged,
                what + " has extent " + std::to_string(extent) + " and stride " + std::to_string(stride)
                    + " along axis " + std::to_string(axis)
                    + ", allowed are extents from 1 and strides from 0; fix: write the plan again: wpk optimize");
        }
        elements = sum(elements, product(extent - 1, stride, what), what);
    }
    return within_memory(product(elements, bytes_of(value.type), what), what);
}

std::uint64_t aligned(std::uint64_t bytes) noexcept
{
    return (bytes + alignment - 1) / alignment * alignment;
}

} // namespace wpk
