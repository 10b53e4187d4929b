// The double's device, contexts and memory.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "plugins/tests/recording_cuda/graphs.hpp"
#include "plugins/tests/recording_cuda/record.hpp"

using namespace recording;

namespace
{

void* memory(CUdeviceptr address)
{
    return reinterpret_cast<void*>(address);
}

CUresult allocate(const char* text, std::size_t size, void** out)
{
    if (record.fails(std::string(text) + " " + std::to_string(size)))
    {
        return out_of_memory;
    }
    *out = record.keep(std::aligned_alloc(256, (size + 255) / 256 * 256));
    std::memset(*out, 0xA5, size);
    record.line("at " + std::to_string(reinterpret_cast<std::uint64_t>(*out)));
    return success;
}

} // namespace

extern "C"
{

    CUresult cuInit(unsigned)
    {
        WPK_CALL("cuInit");
        return success;
    }

    CUresult cuDriverGetVersion(int* version)
    {
        WPK_CALL("cuDriverGetVersion");
        *version = 13000;
        return success;
    }

    CUresult cuGetErrorName(CUresult, const char** name)
    {
        *name = "CUDA_ERROR_OF_THE_DOUBLE";
        return success;
    }

    CUresult cuGetErrorString(CUresult, const char** text)
    {
        *text = "a failure that a test asked for";
        return success;
    }

    CUresult cuCtxGetCurrent(CUcontext* context)
    {
        WPK_CALL("cuCtxGetCurrent");
        *context = record.current();
        return success;
    }

    CUresult cuCtxGetDevice(CUdevice* device)
    {
        WPK_CALL("cuCtxGetDevice");
        *device = 0;
        return success;
    }

    CUresult cuCtxPushCurrent_v2(CUcontext context)
    {
        WPK_CALL("cuCtxPushCurrent");
        record.push(context);
        return success;
    }

    CUresult cuCtxPopCurrent_v2(CUcontext* context)
    {
        record.line("cuCtxPopCurrent");
        *context = record.pop();
        return *context != nullptr ? success : unknown;
    }

    CUresult cuDeviceGet(CUdevice* device, int)
    {
        WPK_CALL("cuDeviceGet");
        *device = 0;
        return success;
    }

    CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice)
    {
        WPK_CALL("cuDevicePrimaryCtxRetain");
        *context = record.take_primary();
        return success;
    }

    CUresult cuDevicePrimaryCtxRelease_v2(CUdevice)
    {
        return record.give_primary_back("cuDevicePrimaryCtxRelease");
    }

    CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t size)
    {
        return allocate("cuMemAlloc", size, reinterpret_cast<void**>(address));
    }

    CUresult cuMemFree_v2(CUdeviceptr address)
    {
        return record.give_back_memory("cuMemFree", memory(address));
    }

    CUresult cuMemAllocHost_v2(void** address, std::size_t size)
    {
        return allocate("cuMemAllocHost", size, address);
    }

    CUresult cuMemFreeHost(void* address)
    {
        return record.give_back_memory("cuMemFreeHost", address);
    }

    CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, std::size_t size)
    {
        WPK_CALL("cuMemcpyHtoD " + std::to_string(size));
        std::memcpy(memory(target), source, size);
        return success;
    }

    CUresult cuMemcpyDtoH_v2(void* target, CUdeviceptr source, std::size_t size)
    {
        WPK_CALL("cuMemcpyDtoH " + std::to_string(size));
        std::memcpy(target, memory(source), size);
        return success;
    }

    CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, std::size_t size, CUstream stream)
    {
        WPK_CALL("cuMemcpyDtoDAsync " + std::to_string(size));
        put(stream, "copy", [=] { std::memcpy(memory(target), memory(source), size); });
        return success;
    }

    CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char byte, std::size_t size, CUstream stream)
    {
        WPK_CALL("cuMemsetD8Async " + std::to_string(size));
        put(stream, "fill", [=] { std::memset(memory(target), byte, size); });
        return success;
    }

} // extern "C"
