#include "plugins/tests/recording_cuda/graphs.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "plugins/tests/recording_cuda/record.hpp"

namespace recording
{

static CUstream_st legacy;

CUstream_st& of(CUstream stream)
{
    return stream != nullptr ? *stream : legacy;
}

void put(CUstream stream, const char* kind, std::function<void()> work)
{
    CUstream_st& on = of(stream);
    if (on.graph == nullptr)
    {
        work();
        return;
    }
    on.graph->nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{kind, std::move(work), on.front}));
    on.front = {on.graph->nodes.back().get()};
}

void tell(const CUgraph_st& graph)
{
    std::map<CUgraphNode, std::size_t> numbers;
    for (const auto& node : graph.nodes)
    {
        std::string text = "node " + std::to_string(numbers.size()) + " " + node->kind + " after";
        for (const CUgraphNode other : node->before)
        {
            text += " " + std::to_string(numbers.at(other));
        }
        record.line(text);
        numbers.emplace(node.get(), numbers.size());
    }
}

void execute(const CUgraph_st& graph)
{
    std::set<CUgraphNode> done;
    while (done.size() < graph.nodes.size())
    {
        for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
        {
            const auto& before = (*node)->before;
            const auto is_done = [&](CUgraphNode other)
            {
                return done.count(other) != 0;
            };
            if (!is_done(node->get()) && std::all_of(before.begin(), before.end(), is_done))
            {
                (*node)->work();
                done.insert(node->get());
                break;
            }
        }
    }
}

} // namespace recording
