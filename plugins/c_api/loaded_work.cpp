#include "plugins/c_api/loaded_work.hpp"

#include "plugins/c_api/reach.hpp"
#include "plugins/core/error.hpp"
#include "plugins/libraries/libraries.hpp"

namespace wpk
{
namespace
{

constexpr std::uint64_t most_kernel_bytes = 64 << 20;

LoadedKernels load_kernels(const Container& file, const PlanSpec& plan)
{
    std::vector<Kernel> kernels = plan.kernels;
    for (Kernel& kernel : kernels)
    {
        kernel.image = file.read("kernels/" + kernel.digest + ".cubin", most_kernel_bytes);
    }
    std::vector<const Launch*> launches;
    for (const PlanSpec::Step& step : plan.steps)
    {
        for (const Launch& launch : launches_of(step.work))
        {
            launches.push_back(&launch);
        }
    }
    return LoadedKernels(kernels, launches);
}

} // namespace

LoadedWork load_work(const Container& file, const PlanSpec& plan, const Dims& dims)
{
    const std::vector<std::int64_t> ends = ends_of_buffers(plan, dims);
    Libraries libraries;
    std::map<std::size_t, std::shared_ptr<ReadyCall>> calls;
    for (std::size_t number = 0; number < plan.steps.size(); ++number)
    {
        const PlanSpec::Step& step = plan.steps[number];
        if (const auto* call = std::get_if<LibraryCall>(&step.work))
        {
            check_reach(step, rooms_of(plan, step, ends), dims); // before anything of it is used
            try
            {
                calls.emplace(number, libraries.prepare(*call));
            }
            catch (const Error& error)
            {
                throw Error(error.code(), "step '" + step.name + "' of the plan: " + error.what());
            }
        }
    }
    return {load_kernels(file, plan), std::move(calls)};
}

} // namespace wpk
