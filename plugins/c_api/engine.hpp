// A plan that is ready to run on one GPU. What wpk.h offers, with exceptions for statuses.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugins/c_api/binding.hpp"
#include "plugins/c_api/device.hpp"
#include "plugins/c_api/weights.hpp"

namespace wpk
{

class Engine
{
public:
    // Throws Error of any code.
    explicit Engine(const std::string& path);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    const PlanSpec& plan() const noexcept
    {
        return plan_;
    }

    // Sizes of the free dimensions, in their order.
    const Dims& dims() const noexcept
    {
        return dims_;
    }

    void set_dimension(const std::string& name, std::int64_t size);

    // Ports are numbered: inputs first, then outputs.
    void bind_port(std::size_t number, std::uint64_t address);

    void capture();
    void run(CUstream stream);

    // Wait for the last run that was started outside of captures.
    void wait();

private:
    void hold(const Layouts& layouts);

    Context context_;
    PlanSpec plan_;
    Dims dims_;
    std::vector<std::uint64_t> addresses_;
    bool is_ready_ = false, has_run_ = false;
    // Given back in the destructor, while the context is current.
    std::optional<LoadedWork> work_;
    Weights weights_;
    DeviceMemory arena_, workspace_, counters_;
    std::uint64_t held_[3] = {0, 0, 0};
    Stream stream_;
    Event end_;
    Binding binding_;
    Executable executable_;
};

} // namespace wpk
