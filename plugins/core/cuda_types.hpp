// The part of the CUDA driver that is used, declared here so that neither a toolkit nor a driver is needed to build.
// The driver's binary interface is stable; a test compares what stands here with cuda.h where one is installed.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C"
{
    typedef int CUresult;
    typedef int CUdevice;
    typedef unsigned long long CUdeviceptr;
    typedef struct CUctx_st* CUcontext;
    typedef struct CUstream_st* CUstream;
    typedef struct CUevent_st* CUevent;
    typedef struct CUlib_st* CUlibrary;
    typedef struct CUkern_st* CUkernel;
    typedef struct CUfunc_st* CUfunction;
    typedef struct CUgraph_st* CUgraph;
    typedef struct CUgraphNode_st* CUgraphNode;
    typedef struct CUgraphExec_st* CUgraphExec;
}

namespace wpk
{

// CUDA 13 asks for 128 bytes, CUDA 12 for 64.
struct alignas(128) TensorMapDescriptor
{
    std::uint64_t words[16];
};

struct LaunchAttribute
{
    std::int32_t id;
    char padding[4];
    union
    {
        char bytes[64];
        struct
        {
            std::uint32_t x, y, z;
        } cluster;
        std::int32_t programmatic_serialization, cooperative;
    } value;
};

constexpr std::int32_t attribute_cooperative = 2;
constexpr std::int32_t attribute_cluster = 4;
constexpr std::int32_t attribute_programmatic_serialization = 6;

struct LaunchConfiguration
{
    std::uint32_t grid[3];
    std::uint32_t block[3];
    std::uint32_t shared_bytes;
    CUstream stream;
    LaunchAttribute* attributes;
    std::uint32_t attribute_count;
};

} // namespace wpk
