// What the driver gives and wants back: a context, memory, a stream, an event, a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "plugins/core/cuda_driver.hpp"

namespace wpk
{

// The context that was current when it was taken, or device 0's primary one.
class Context
{
public:
    // Throws Error(no_driver, driver).
    Context();
    ~Context();
    Context(const Context&) = delete;
    Context& operator=(const Context&) = delete;

    CUcontext handle() const noexcept
    {
        return context_;
    }

private:
    CUcontext context_ = nullptr;
    bool is_retained_ = false;
};

// While it lives, the context is this thread's.
class Current
{
public:
    explicit Current(const Context& context);
    ~Current();
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
};

// A handle that is given back in the end; null where there is none. The context must be current then.
template <typename Handle, CUresult (*give_back)(Handle)>
class Owned
{
public:
    Owned() = default;
    explicit Owned(Handle handle) noexcept : handle_(handle) {}
    Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
    Owned& operator=(Owned&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~Owned()
    {
        if (handle_ != Handle{})
        {
            give_back(handle_);
        }
    }

    Handle get() const noexcept
    {
        return handle_;
    }

private:
    Handle handle_{};
};

CUresult free_memory(CUdeviceptr address) noexcept;
CUresult free_pinned(void* memory) noexcept;
CUresult destroy_stream(CUstream stream) noexcept;
CUresult destroy_event(CUevent event) noexcept;
CUresult destroy_graph(CUgraph graph) noexcept;
CUresult destroy_executable(CUgraphExec executable) noexcept;

using DeviceMemory = Owned<CUdeviceptr, &free_memory>;
using PinnedMemory = Owned<void*, &free_pinned>;
using Stream = Owned<CUstream, &destroy_stream>;
using Event = Owned<CUevent, &destroy_event>;
using Graph = Owned<CUgraph, &destroy_graph>;
using Executable = Owned<CUgraphExec, &destroy_executable>;

// Each throws Error(driver, out_of_memory). Of memory there are at least 256 bytes.
DeviceMemory allocate(std::uint64_t bytes);
PinnedMemory allocate_pinned(std::size_t bytes);
Stream make_stream(); // that does not wait for the legacy one
Event make_event();   // without time stamps

} // namespace wpk
