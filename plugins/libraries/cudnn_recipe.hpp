// What cuDNN makes an implementation of, as docs/spec_format.md describes it: a graph, an engine's number, its knobs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "plugins/core/spec.hpp"

namespace wpk
{

struct CudnnTensor
{
    ElementType type;
    std::vector<std::int64_t> dims, strides; // elements; broadcast axes have extent 1
};

// Of which values a step is computed: a value's number, or a constant. What is numbered stands where steps stand.
using CudnnArgument = std::variant<std::uint32_t, double>;

struct PointwiseStep
{
    std::string method;
    std::vector<CudnnArgument> arguments;
    std::vector<std::pair<std::string, double>> options;
};

struct ConvolutionNode
{
    std::array<std::int64_t, 2> before, after, stride, dilation;
    bool is_backward; // computes its image from its result
};
struct MatmulNode
{
};
struct NormNode
{
    std::string method;
    double epsilon;
    bool is_shifted;
};
struct AttentionNode
{
    double scale;
    bool is_biased;
    std::vector<PointwiseStep> scores; // over the products and the inputs behind the third; then no scale, no bias
};
struct SoftmaxNode
{
    bool is_log;
};
struct ReductionNode
{
    std::string mode;
    std::vector<PointwiseStep> steps; // over the inputs that are not the epilogue's, numbered from 1
};
struct PointwiseNode
{
};
using CudnnNode =
    std::variant<ConvolutionNode, MatmulNode, NormNode, AttentionNode, SoftmaxNode, ReductionNode, PointwiseNode>;

struct CudnnRecipe
{
    std::int64_t engine;
    std::vector<std::pair<std::string, std::int64_t>> knobs;
    bool is_strict; // products must not round their operands
    std::vector<CudnnTensor> inputs;
    CudnnTensor output;
    std::uint32_t operands; // of the inputs, the last ones that belong to the epilogue
    CudnnNode node;
    std::vector<PointwiseStep> epilogue; // over the node's result (0) and the operands
};

// Read and check a recipe; throw Error(damaged).
CudnnRecipe read_cudnn_recipe(const std::vector<std::byte>& data);

} // namespace wpk
