// A variant of an operator with sizes, on memory of one execution context.
#pragma once

#include <memory>

#include "plugins/core/library.hpp"
#include "plugins/tensorrt/kernel_operator.hpp"

namespace wpk
{

class BoundOperator
{
public:
    // Loads the kernels where that has not been done, makes a library's call ready, and gives the counters zeroed
    // memory of its own. May allocate, so not within a capture. Throws Error of any code.
    BoundOperator(const KernelOperator& kernels, std::size_t variant, Dims dims);
    BoundOperator(const BoundOperator&) = delete;
    BoundOperator& operator=(const BoundOperator&) = delete;

    bool is_for(std::size_t variant, const Dims& dims) const noexcept
    {
        return variant == variant_ && dims == dims_;
    }

    // Launch on a stream; may be captured. Allocates nothing for kernels. Throws Error(driver, invalid_argument).
    void enqueue(const void* const* inputs, void* const* outputs, void* workspace, CUstream stream);

private:
    // Zeroed memory of the GPU.
    class Counters
    {
    public:
        Counters() = default;
        explicit Counters(std::uint64_t bytes);
        Counters& operator=(Counters&& other) noexcept;
        ~Counters();

        CUdeviceptr address() const noexcept
        {
            return address_;
        }

    private:
        CUdeviceptr address_ = 0;
    };

    const KernelOperator& operator_;
    std::size_t variant_;
    Dims dims_;
    Addresses addresses_;
    Counters counters_;
    std::vector<BoundLaunch> launches_;
    std::shared_ptr<ReadyCall> call_; // where a library computes the variant
};

} // namespace wpk
