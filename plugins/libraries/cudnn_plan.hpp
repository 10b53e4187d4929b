// Execution plans of cuDNN's frontend. The frontend includes the driver's header, which the core does without: so
// addresses and streams are numbers here.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "plugins/libraries/cudnn_recipe.hpp"

namespace wpk
{

// The version of the library, which is opened here and stays open. Throws Error(unsupported).
std::string cudnn_version();

// A handle of cuDNN in the context that is current while it is made.
class CudnnHandle;
std::shared_ptr<const CudnnHandle> make_cudnn_handle();

// A recipe that is ready to run. One thread after the other may use plans of a handle.
class CudnnPlan
{
public:
    // Throws Error(damaged, unsupported).
    CudnnPlan(std::shared_ptr<const CudnnHandle> handle, const CudnnRecipe& recipe);
    CudnnPlan(const CudnnPlan&) = delete;
    CudnnPlan& operator=(const CudnnPlan&) = delete;
    ~CudnnPlan();

    std::uint64_t workspace_bytes() const noexcept;

    // `tensors` are the inputs, then the output. Throws Error(invalid_argument, unsupported).
    void put_on(std::uint64_t stream, const std::vector<std::uint64_t>& tensors, std::uint64_t workspace);

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace wpk
