#include "plugins/c_api/device.hpp"

#include <algorithm>

namespace wpk
{
namespace
{

constexpr std::uint64_t least_bytes = 256;
constexpr unsigned non_blocking = 1, without_timing = 2;

} // namespace

Context::Context()
{
    const Driver& cuda = driver();
    require(cuda.cuCtxGetCurrent(&context_), "tell the current context");
    if (context_ == nullptr)
    {
        require(cuda.cuDevicePrimaryCtxRetain(&context_, 0), "take device 0's primary context");
        is_retained_ = true;
    }
}

Context::~Context()
{
    if (is_retained_)
    {
        driver().cuDevicePrimaryCtxRelease(0);
    }
}

Current::Current(const Context& context)
{
    require(driver().cuCtxPushCurrent(context.handle()), "make the engine's context current");
}

Current::~Current()
{
    CUcontext popped = nullptr;
    driver().cuCtxPopCurrent(&popped);
}

CUresult free_memory(CUdeviceptr address) noexcept
{
    return driver().cuMemFree(address);
}

CUresult free_pinned(void* memory) noexcept
{
    return driver().cuMemFreeHost(memory);
}

CUresult destroy_stream(CUstream stream) noexcept
{
    return driver().cuStreamDestroy(stream);
}

CUresult destroy_event(CUevent event) noexcept
{
    return driver().cuEventDestroy(event);
}

CUresult destroy_graph(CUgraph graph) noexcept
{
    return driver().cuGraphDestroy(graph);
}

CUresult destroy_executable(CUgraphExec executable) noexcept
{
    return driver().cuGraphExecDestroy(executable);
}

DeviceMemory allocate(std::uint64_t bytes)
{
    CUdeviceptr address = 0;
    require(driver().cuMemAlloc(&address, std::max(bytes, least_bytes)), "allocate memory of the GPU");
    return DeviceMemory(address);
}

PinnedMemory allocate_pinned(std::size_t bytes)
{
    void* memory = nullptr;
    require(driver().cuMemAllocHost(&memory, bytes), "allocate pinned memory");
    return PinnedMemory(memory);
}

Stream make_stream()
{
    CUstream stream = nullptr;
    require(driver().cuStreamCreate(&stream, non_blocking), "make a stream");
    return Stream(stream);
}

Event make_event()
{
    CUevent event = nullptr;
    require(driver().cuEventCreate(&event, without_timing), "make an event");
    return Event(event);
}

} // namespace wpk
