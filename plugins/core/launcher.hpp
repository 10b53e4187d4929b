// From launches to the CUDA driver, which is found when it is first asked for: nothing links with it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/spec.hpp"

namespace wpk
{

// Machine code that is loaded, and its kernels, ready to be launched with what their launches ask for.
// Copies share it; the last one unloads it.
class LoadedKernels
{
public:
    // Load images (one for each kernel, in their order) into the current context, and set
    // the shared memory that `launches` ask for. Throws Error(driver, no_driver, damaged).
    LoadedKernels(const std::vector<Kernel>& kernels, const std::vector<const Launch*>& launches);

    CUkernel at(std::uint32_t number) const;

private:
    struct State;
    std::shared_ptr<const State> state_;
};

// Where an operator's operands lie.
struct Addresses
{
    std::vector<std::uint64_t> inputs, outputs;
    std::uint64_t workspace = 0;
    std::uint64_t counters = 0;
};

// The launches of an operator, none where a library computes it.
const std::vector<Launch>& launches_of(const Work& work) noexcept;

// Bytes that an operator asks for: the most of any of its launches, or its library's.
std::uint64_t workspace_bytes(const Work& work, const Dims& dims);
std::uint64_t counter_bytes(const Work& work, const Dims& dims);

// A launch with sizes and addresses: parameters lie here, tensor maps are encoded. Movable, not copyable.
class BoundLaunch
{
public:
    // Throws Error(invalid_argument) where a size is no int32, a grid beyond CUDA's limits or a tensor map none that
    // the hardware takes, and Error(driver, no_driver).
    BoundLaunch(const Launch& launch, CUkernel kernel, const Addresses& addresses, const Dims& dims);
    BoundLaunch(BoundLaunch&&) noexcept;
    BoundLaunch& operator=(BoundLaunch&&) noexcept;
    ~BoundLaunch();

    // Give it new addresses; tensor maps are encoded again only where theirs changed. Allocates nothing. Throws
    // Error(invalid_argument, driver) for addresses that it cannot have; it may be enqueued again after another move.
    void move_to(const Addresses& addresses);

    // cuLaunchKernelEx: no allocation, no synchronisation; may be captured. The driver's status.
    CUresult enqueue(CUstream stream) const noexcept;

private:
    struct State;
    std::unique_ptr<State> state_;
};

} // namespace wpk
