// The driver's functions that are used, by their names without version suffix.
#pragma once

#include "plugins/core/cuda_types.hpp"

namespace wpk
{

struct Driver
{
    CUresult (*cuInit)(unsigned);
    CUresult (*cuGetErrorName)(CUresult, const char**);
    CUresult (*cuGetErrorString)(CUresult, const char**);

    CUresult (*cuCtxGetCurrent)(CUcontext*);
    CUresult (*cuCtxGetDevice)(CUdevice*);
    CUresult (*cuCtxPushCurrent)(CUcontext);
    CUresult (*cuCtxPopCurrent)(CUcontext*);
    CUresult (*cuDevicePrimaryCtxRetain)(CUcontext*, CUdevice);
    CUresult (*cuDevicePrimaryCtxRelease)(CUdevice);

    CUresult (*cuMemAlloc)(CUdeviceptr*, std::size_t);
    CUresult (*cuMemFree)(CUdeviceptr);
    CUresult (*cuMemAllocHost)(void**, std::size_t);
    CUresult (*cuMemFreeHost)(void*);
    CUresult (*cuMemcpyHtoD)(CUdeviceptr, const void*, std::size_t);
    CUresult (*cuMemcpyDtoH)(void*, CUdeviceptr, std::size_t);
    CUresult (*cuMemcpyDtoDAsync)(CUdeviceptr, CUdeviceptr, std::size_t, CUstream);
    CUresult (*cuMemsetD8Async)(CUdeviceptr, unsigned char, std::size_t, CUstream);

    CUresult (*cuStreamCreate)(CUstream*, unsigned);
    CUresult (*cuStreamDestroy)(CUstream);
    CUresult (*cuStreamSynchronize)(CUstream);
    CUresult (*cuStreamWaitEvent)(CUstream, CUevent, unsigned);
    CUresult (*cuEventCreate)(CUevent*, unsigned);
    CUresult (*cuEventDestroy)(CUevent);
    CUresult (*cuEventRecord)(CUevent, CUstream);
    CUresult (*cuEventSynchronize)(CUevent);
    CUresult (*cuEventElapsedTime)(float*, CUevent, CUevent);

    CUresult (*cuStreamBeginCapture)(CUstream, int);
    CUresult (*cuStreamEndCapture)(CUstream, CUgraph*);
    CUresult (*cuStreamGetCaptureInfo)(CUstream, int*, std::uint64_t*, CUgraph*, const CUgraphNode**, std::size_t*);
    CUresult (*cuStreamUpdateCaptureDependencies)(CUstream, CUgraphNode*, std::size_t, unsigned);
    CUresult (*cuGraphAddEmptyNode)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t);
    CUresult (*cuGraphInstantiate)(CUgraphExec*, CUgraph, unsigned long long);
    CUresult (*cuGraphDestroy)(CUgraph);
    CUresult (*cuGraphExecDestroy)(CUgraphExec);
    CUresult (*cuGraphLaunch)(CUgraphExec, CUstream);

    CUresult (*cuLibraryLoadData)(CUlibrary*, const void*, int*, void**, unsigned, int*, void**, unsigned);
    CUresult (*cuLibraryUnload)(CUlibrary);
    CUresult (*cuLibraryGetKernel)(CUkernel*, CUlibrary, const char*);
    CUresult (*cuKernelSetAttribute)(int, int, CUkernel, CUdevice);
    CUresult (*cuKernelGetFunction)(CUfunction*, CUkernel);
    CUresult (*cuLaunchKernelEx)(const LaunchConfiguration*, CUfunction, void**, void**);

    // Null in drivers without tensor maps.
    CUresult (*cuTensorMapEncodeTiled)(TensorMapDescriptor*, int, std::uint32_t, void*, const std::uint64_t*,
        const std::uint64_t*, const std::uint32_t*, const std::uint32_t*, int, int, int, int);
    CUresult (*cuTensorMapEncodeIm2col)(TensorMapDescriptor*, int, std::uint32_t, void*, const std::uint64_t*,
        const std::uint64_t*, const int*, const int*, std::uint32_t, std::uint32_t, const std::uint32_t*, int, int, int,
        int);
};

} // namespace wpk
