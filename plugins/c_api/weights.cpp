#include "plugins/c_api/weights.hpp"

#include <algorithm>
#include <numeric>

#include "plugins/c_api/checked_sizes.hpp"
#include "plugins/c_api/memory_layout.hpp"

namespace wpk
{
namespace
{

constexpr std::size_t piece_bytes = 4 << 20;
const char* const member_name = "weights.safetensors";

// Throws unless a weight lies within the member.
void check_range(const Container& file, const PlanSpec::Weight& weight)
{
    const std::uint64_t room = file.find(member_name).bytes;
    if (weight.begin > room || weight.bytes > room - weight.begin)
    {
        throw Error(Code::damaged, "'" + file.path() + "': weight '" + weight.name + "' claims "
                                       + std::to_string(weight.bytes) + " bytes from " + std::to_string(weight.begin)
                                       + ", '" + member_name + "' has " + std::to_string(room)
                                       + "; fix: write the plan again: wpk optimize");
    }
}

} // namespace

Weights upload_weights(const Container& file, const std::vector<PlanSpec::Weight>& weights)
{
    Weights uploaded;
    std::int64_t total = 0;
    for (const PlanSpec::Weight& weight : weights)
    {
        check_range(file, weight);
        uploaded.addresses.push_back(static_cast<std::uint64_t>(total));
        total = sum(total, static_cast<std::int64_t>(aligned(weight.bytes)), "the weights of the plan");
    }
    uploaded.memory = allocate(static_cast<std::uint64_t>(within_memory(total, "the weights of the plan")));
    for (std::uint64_t& address : uploaded.addresses)
    {
        address += uploaded.memory.get();
    }
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return weights[a].begin < weights[b].begin; });
    const PinnedMemory buffer = allocate_pinned(piece_bytes);
    auto* const data = static_cast<std::byte*>(buffer.get());
    auto first = order.begin(); // in front of it all weights are copied
    file.read_pieces(member_name, data, piece_bytes,
        [&](std::uint64_t place, std::size_t size)
        {
            const std::uint64_t behind = place + size;
            for (auto at = first; at != order.end() && weights[*at].begin < behind; ++at)
            {
                const PlanSpec::Weight& weight = weights[*at];
                const std::uint64_t from = std::max(weight.begin, place);
                const std::uint64_t to = std::min(weight.begin + weight.bytes, behind);
                if (from < to)
                {
                    const std::uint64_t target = uploaded.addresses[*at] + (from - weight.begin);
                    require(driver().cuMemcpyHtoD(target, data + (from - place), to - from), "copy weights to the GPU");
                }
            }
            while (first != order.end() && weights[*first].begin + weights[*first].bytes <= behind)
            {
                ++first;
            }
        });
    return uploaded;
}

} // namespace wpk
