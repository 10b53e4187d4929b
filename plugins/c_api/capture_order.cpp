#include "plugins/c_api/capture_order.hpp"

#include <algorithm>
#include <string>

#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

constexpr int is_captured = 1, was_broken_off = 2;
constexpr unsigned replace_dependencies = 1;

void set_front(CUstream stream, Nodes nodes)
{
    require(driver().cuStreamUpdateCaptureDependencies(stream, nodes.data(), nodes.size(), replace_dependencies),
        "order a graph");
}

bool is_kernel(const BoundWork& piece)
{
    return std::holds_alternative<BoundLaunch>(piece);
}

void put_piece(CUstream stream, const BoundWork& piece, bool is_behind_kernel)
{
    if (const auto* launch = std::get_if<BoundLaunch>(&piece))
    {
        require(launch->enqueue(stream), "launch a kernel");
        return;
    }
    if (is_behind_kernel)
    {
        end_overlap(stream);
    }
    const BoundCall& bound = std::get<BoundCall>(piece);
    bound.call->put_on(stream, bound.addresses);
}

} // namespace

Front front_of(CUstream stream)
{
    int status = 0;
    CUgraph graph = nullptr;
    const CUgraphNode* nodes = nullptr;
    std::size_t count = 0;
    require(driver().cuStreamGetCaptureInfo(stream, &status, nullptr, &graph, &nodes, &count), "look at a stream");
    if (status == was_broken_off)
    {
        throw Error(Code::driver,
            "the stream's capture was broken off by something that may not be captured; fix: end the capture, and "
            "capture again without it");
    }
    if (status != is_captured)
    {
        return {nullptr, {}};
    }
    return {graph, Nodes(nodes, nodes + count)};
}

void put_in_order(CUstream stream, const OrderedWork& work)
{
    const std::size_t count = work.pieces.size();
    if (count == 0)
    {
        return;
    }
    const Nodes roots = front_of(stream).nodes;
    std::vector<bool> is_followed(count), is_asked(count), moves(count);
    for (std::size_t number = 0; number < count; ++number)
    {
        const std::vector<std::size_t>& before = work.predecessors[number];
        moves[number] = number > 0 && before != std::vector<std::size_t>{number - 1};
        for (const std::size_t other : before)
        {
            is_followed[other] = true;
            is_asked[other] = is_asked[other] || moves[number];
        }
    }
    std::vector<Nodes> ends(count);
    const auto add = [](Nodes& all, const Nodes& more)
    {
        all.insert(all.end(), more.begin(), more.end());
    };
    Nodes last;
    for (std::size_t number = 0; number < count; ++number)
    {
        if (moves[number])
        {
            Nodes front = work.predecessors[number].empty() ? roots : Nodes();
            for (const std::size_t other : work.predecessors[number])
            {
                add(front, ends[other]);
            }
            set_front(stream, front);
        }
        const std::vector<std::size_t>& before = work.predecessors[number];
        const bool is_behind_kernel =
            std::any_of(before.begin(), before.end(), [&](std::size_t other) { return is_kernel(work.pieces[other]); });
        put_piece(stream, work.pieces[number], is_behind_kernel);
        if (is_asked[number] || !is_followed[number])
        {
            ends[number] = front_of(stream).nodes;
        }
        if (!is_followed[number])
        {
            add(last, ends[number]);
        }
    }
    set_front(stream, last);
}

void end_overlap(CUstream stream)
{
    const Front front = front_of(stream);
    CUgraphNode node = nullptr;
    require(driver().cuGraphAddEmptyNode(&node, front.graph, front.nodes.data(), front.nodes.size()), "order a graph");
    set_front(stream, {node});
}

} // namespace wpk
