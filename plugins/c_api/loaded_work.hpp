// What computes a plan's steps, loaded on the GPU whose context is current.
#pragma once

#include <map>
#include <memory>

#include "plugins/c_api/container.hpp"
#include "plugins/core/library.hpp"

namespace wpk
{

struct LoadedWork
{
    LoadedKernels kernels;
    std::map<std::size_t, std::shared_ptr<ReadyCall>> calls; // by the number of their step; equal ones are shared
};

// The sizes are some that will be asked for. Throws Error of any code.
LoadedWork load_work(const Container& file, const PlanSpec& plan, const Dims& dims);

} // namespace wpk
