// print_launches SPEC DIM... : binds the launches of an operator's first variant and enqueues them once for each line
// of the standard input, moved from line to line. A line has the addresses of inputs, outputs, workspace and counters.
// Answers each line with one: the bytes of workspace and counters that are asked for, or why there is no launch.
// WPK_RECORD tells what the driver was asked for.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "plugins/core/error.hpp"
#include "plugins/core/launcher.hpp"

namespace
{

using namespace wpk;

OperatorSpec read(const char* path)
{
    std::ifstream file(path, std::ios::binary);
    const std::string data((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    return read_operator(reinterpret_cast<const std::byte*>(data.data()), data.size());
}

Addresses addresses_of(const std::string& line, const OperatorSpec& spec)
{
    std::istringstream words(line);
    Addresses addresses;
    addresses.inputs.resize(spec.inputs.size());
    addresses.outputs.resize(spec.outputs.size());
    for (auto* operands : {&addresses.inputs, &addresses.outputs})
    {
        for (std::uint64_t& address : *operands)
        {
            words >> address;
        }
    }
    words >> addresses.workspace >> addresses.counters;
    return addresses;
}

class Operator
{
public:
    Operator(const OperatorSpec& spec, Dims dims)
        : launches_(launches_of(spec.variants.at(0).work)), dims_(std::move(dims))
    {
        std::vector<const Launch*> loaded;
        for (const Launch& launch : launches_)
        {
            loaded.push_back(&launch);
        }
        kernels_.emplace(spec.kernels, loaded);
    }

    // The first time it binds, from then on it moves.
    void enqueue(const Addresses& addresses)
    {
        for (BoundLaunch& launch : bound_)
        {
            launch.move_to(addresses);
        }
        while (bound_.size() < launches_.size())
        {
            const Launch& launch = launches_[bound_.size()];
            bound_.emplace_back(launch, kernels_->at(launch.kernel), addresses, dims_);
        }
        for (const BoundLaunch& launch : bound_)
        {
            require(launch.enqueue(nullptr), "launch a kernel");
        }
    }

    std::string asked() const
    {
        return std::to_string(workspace_bytes(launches_, dims_)) + " "
               + std::to_string(counter_bytes(launches_, dims_));
    }

private:
    std::vector<Launch> launches_;
    Dims dims_;
    std::optional<LoadedKernels> kernels_;
    std::vector<BoundLaunch> bound_;
};

void answer(std::optional<Operator>& bound, const OperatorSpec& spec, const Dims& dims, const std::string& line)
{
    try
    {
        if (!bound)
        {
            bound.emplace(spec, dims);
        }
        bound->enqueue(addresses_of(line, spec));
        std::puts(bound->asked().c_str());
    }
    catch (const Error& error)
    {
        std::printf("error %d: %s\n", static_cast<int>(error.code()), error.what());
    }
}

} // namespace

int main(int count, char** words)
{
    if (count < 2)
    {
        std::fputs("usage: print_launches SPEC DIM...\n", stderr);
        return 2;
    }
    const OperatorSpec spec = read(words[1]);
    Dims dims;
    for (int i = 2; i < count; ++i)
    {
        dims.push_back(std::atoll(words[i]));
    }
    std::optional<Operator> bound;
    for (std::string line; std::getline(std::cin, line);)
    {
        answer(bound, spec, dims, line);
    }
    return 0;
}
