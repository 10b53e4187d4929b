// What the double's handles point to.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/core/cuda_types.hpp"

struct CUctx_st
{
    int unused;
};
struct CUevent_st
{
    int unused;
};
struct CUkern_st
{
    std::string parameters;
};
struct CUlib_st
{
    std::map<std::string, CUkern_st> kernels;
    CUkern_st any; // where names mean nothing
};
struct CUgraphNode_st
{
    const char* kind;
    std::function<void()> work;
    std::vector<CUgraphNode> before;
};
struct CUgraph_st
{
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st
{
    CUgraph_st graph;
};
struct CUstream_st
{
    CUgraph graph = nullptr;
    std::vector<CUgraphNode> front;
};
