#include "plugins/core/cuda_driver.hpp"

#include <cstdlib>
#include <string>

#include <dlfcn.h>

#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

constexpr CUresult success = 0, out_of_memory = 2;
constexpr const char* library_variable = "WPK_CUDA_DRIVER";

void* opened()
{
    const char* named = std::getenv(library_variable);
    const char* library = named != nullptr ? named : "libcuda.so.1";
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr)
    {
        const char* why = dlerror();
        throw Error(
            Code::no_driver, std::string("no CUDA driver: ") + (why != nullptr ? why : library)
                                 + "; fix: install NVIDIA's driver, or make its libcuda.so.1 visible to this process");
    }
    return handle;
}

template <typename Function>
void find_if_there(void* library, const char* name, Function& function)
{
    function = reinterpret_cast<Function>(dlsym(library, name));
}

template <typename Function>
void find(void* library, const char* name, Function& function)
{
    find_if_there(library, name, function);
    if (function == nullptr)
    {
        throw Error(Code::no_driver, std::string("the CUDA driver has no ") + name
                                         + ", which drivers have since CUDA 12.0; fix: install a newer driver");
    }
}

Driver found(void* library)
{
    Driver cuda{};
    find(library, "cuInit", cuda.cuInit);
    find(library, "cuGetErrorName", cuda.cuGetErrorName);
    find(library, "cuGetErrorString", cuda.cuGetErrorString);
    find(library, "cuCtxGetCurrent", cuda.cuCtxGetCurrent);
    find(library, "cuCtxGetDevice", cuda.cuCtxGetDevice);
    find(library, "cuCtxPushCurrent_v2", cuda.cuCtxPushCurrent);
    find(library, "cuCtxPopCurrent_v2", cuda.cuCtxPopCurrent);
    find(library, "cuDevicePrimaryCtxRetain", cuda.cuDevicePrimaryCtxRetain);
    find(library, "cuDevicePrimaryCtxRelease_v2", cuda.cuDevicePrimaryCtxRelease);
    find(library, "cuMemAlloc_v2", cuda.cuMemAlloc);
    find(library, "cuMemFree_v2", cuda.cuMemFree);
    find(library, "cuMemAllocHost_v2", cuda.cuMemAllocHost);
    find(library, "cuMemFreeHost", cuda.cuMemFreeHost);
    find(library, "cuMemcpyHtoD_v2", cuda.cuMemcpyHtoD);
    find(library, "cuMemcpyDtoH_v2", cuda.cuMemcpyDtoH);
    find(library, "cuMemcpyDtoDAsync_v2", cuda.cuMemcpyDtoDAsync);
    find(library, "cuMemsetD8Async", cuda.cuMemsetD8Async);
    find(library, "cuStreamCreate", cuda.cuStreamCreate);
    find(library, "cuStreamDestroy_v2", cuda.cuStreamDestroy);
    find(library, "cuStreamSynchronize", cuda.cuStreamSynchronize);
    find(library, "cuStreamWaitEvent", cuda.cuStreamWaitEvent);
    find(library, "cuEventCreate", cuda.cuEventCreate);
    find(library, "cuEventDestroy_v2", cuda.cuEventDestroy);
    find(library, "cuEventRecord", cuda.cuEventRecord);
    find(library, "cuEventSynchronize", cuda.cuEventSynchronize);
    find(library, "cuEventElapsedTime", cuda.cuEventElapsedTime);
    find(library, "cuStreamBeginCapture_v2", cuda.cuStreamBeginCapture);
    find(library, "cuStreamEndCapture", cuda.cuStreamEndCapture);
    find(library, "cuStreamGetCaptureInfo_v2", cuda.cuStreamGetCaptureInfo);
    find(library, "cuStreamUpdateCaptureDependencies", cuda.cuStreamUpdateCaptureDependencies);
    find(library, "cuGraphAddEmptyNode", cuda.cuGraphAddEmptyNode);
    find(library, "cuGraphInstantiateWithFlags", cuda.cuGraphInstantiate);
    find(library, "cuGraphDestroy", cuda.cuGraphDestroy);
    find(library, "cuGraphExecDestroy", cuda.cuGraphExecDestroy);
    find(library, "cuGraphLaunch", cuda.cuGraphLaunch);
    find(library, "cuLibraryLoadData", cuda.cuLibraryLoadData);
    find(library, "cuLibraryUnload", cuda.cuLibraryUnload);
    find(library, "cuLibraryGetKernel", cuda.cuLibraryGetKernel);
    find(library, "cuKernelSetAttribute", cuda.cuKernelSetAttribute);
    find(library, "cuKernelGetFunction", cuda.cuKernelGetFunction);
    find(library, "cuLaunchKernelEx", cuda.cuLaunchKernelEx);
    find_if_there(library, "cuTensorMapEncodeTiled", cuda.cuTensorMapEncodeTiled);
    find_if_there(library, "cuTensorMapEncodeIm2col", cuda.cuTensorMapEncodeIm2col);
    return cuda;
}

std::string words(const Driver& cuda, CUresult status)
{
    const char *name = nullptr, *text = nullptr;
    if (cuda.cuGetErrorName(status, &name) != success || cuda.cuGetErrorString(status, &text) != success)
    {
        return "error " + std::to_string(status);
    }
    return std::string(name) + " (" + text + ")";
}

[[noreturn]] void refused(const Driver& cuda, CUresult status, const char* what)
{
    const bool is_full = status == out_of_memory;
    throw Error(is_full ? Code::out_of_memory : Code::driver,
        std::string("the driver cannot ") + what + ": " + words(cuda, status)
            + (is_full ? "; fix: free memory of the GPU, or use smaller batches"
                       : "; fix: look at what the process did on the GPU before, errors of kernels come late"));
}

Driver started()
{
    const Driver cuda = found(opened());
    if (const CUresult status = cuda.cuInit(0); status != success)
    {
        throw Error(
            Code::no_driver, "the CUDA driver does not start: " + words(cuda, status)
                                 + "; fix: see that nvidia-smi lists a GPU, and that CUDA_VISIBLE_DEVICES leaves one");
    }
    return cuda;
}

} // namespace

const Driver& driver()
{
    static const Driver cuda = started();
    return cuda;
}

void require(CUresult status, const char* what)
{
    if (status != success)
    {
        refused(driver(), status, what);
    }
}

} // namespace wpk
