#include <algorithm>

#include "plugins/core/error.hpp"
#include "plugins/core/image.hpp"
#include "plugins/core/launcher.hpp"

namespace wpk
{
namespace
{

constexpr int largest_shared_memory = 8, non_portable_cluster = 14; // CUfunction_attribute
constexpr std::uint32_t portable_cluster = 8;

// What all launches of a kernel need together.
struct Needs
{
    std::uint32_t shared_bytes = 0;
    bool has_large_cluster = false;
};

} // namespace

struct LoadedKernels::State
{
    std::vector<CUlibrary> libraries;
    std::vector<CUkernel> kernels;

    State() = default;
    State(const State&) = delete;
    State& operator=(const State&) = delete;

    ~State()
    {
        for (CUlibrary library : libraries)
        {
            driver().cuLibraryUnload(library);
        }
    }

    void load(const Kernel& kernel)
    {
        require_whole(kernel);
        libraries.reserve(libraries.size() + 1);
        CUlibrary library = nullptr;
        const std::string what = "load kernel " + kernel.entry + ", compiled for " + kernel.arch + ",";
        require(driver().cuLibraryLoadData(&library, kernel.image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
            what.c_str());
        libraries.push_back(library);
        CUkernel loaded = nullptr;
        require(driver().cuLibraryGetKernel(&loaded, library, kernel.entry.c_str()),
            ("find kernel " + kernel.entry).c_str());
        kernels.push_back(loaded);
    }
};

LoadedKernels::LoadedKernels(const std::vector<Kernel>& kernels, const std::vector<const Launch*>& launches)
{
    std::vector<Needs> needs(kernels.size());
    for (const Launch* launch : launches)
    {
        Needs& need = needs.at(launch->kernel);
        need.shared_bytes = std::max(need.shared_bytes, launch->shared_bytes);
        const auto& cluster = launch->cluster;
        need.has_large_cluster |= cluster[0] * cluster[1] * cluster[2] > portable_cluster;
    }
    CUdevice device = 0;
    require(driver().cuCtxGetDevice(&device), "tell the current context's device");
    auto state = std::make_shared<State>();
    for (std::size_t number = 0; number < kernels.size(); ++number)
    {
        state->load(kernels[number]);
        const auto allow = [&](int attribute, int value)
        {
            require(driver().cuKernelSetAttribute(attribute, value, state->kernels[number], device),
                ("give kernel " + kernels[number].entry + " the shared memory or cluster that it asks for").c_str());
        };
        allow(largest_shared_memory, static_cast<int>(needs[number].shared_bytes));
        if (needs[number].has_large_cluster)
        {
            allow(non_portable_cluster, 1);
        }
        // The function of the current context, asked for here, so that no launch loads lazily.
        CUfunction function = nullptr;
        require(driver().cuKernelGetFunction(&function, state->kernels[number]),
            ("load kernel " + kernels[number].entry + " into the current context").c_str());
    }
    state_ = std::move(state);
}

CUkernel LoadedKernels::at(std::uint32_t number) const
{
    return state_->kernels.at(number);
}

} // namespace wpk
