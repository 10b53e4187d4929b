// What docs/spec_format.md describes, as types: an operator's launches, and a plan's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "plugins/core/expression.hpp"

namespace wpk
{

enum class ElementType : std::uint8_t
{
    fp32 = 1,
    fp16,
    bf16,
    int8,
    uint8,
    int32,
    int64,
    boolean,
    int16,
    uint16,
    uint32,
    uint64,
    fp64,
    fp8_e4m3,
    fp8_e5m2
};
enum class Format : std::uint8_t
{
    linear,
    hwc,
    hwc8,
    hwc16
};

std::uint32_t bytes_of(ElementType type) noexcept;

struct Im2col
{
    std::vector<std::int32_t> lower, upper;
    std::vector<std::uint32_t> steps;
};

struct InputArgument
{
    std::uint32_t index;
};
struct SizeArgument
{
    Expression value; // passed as int32
};
struct TensorMapArgument
{
    std::uint32_t index;
    std::uint32_t element_bytes;
    std::vector<Expression> shape;   // innermost first
    std::vector<Expression> strides; // bytes, of all but the innermost
    std::vector<std::uint32_t> box;
    std::uint32_t swizzle;
    bool to_tf32;
    std::optional<Im2col> im2col;
};
struct OutputArgument
{
    std::uint32_t index;
};
struct WorkspaceArgument
{
    Expression bytes;
};
struct CounterArgument
{
    Expression count; // int32 that are zero before the launch, and that it leaves zero
};
using Argument =
    std::variant<InputArgument, SizeArgument, TensorMapArgument, OutputArgument, WorkspaceArgument, CounterArgument>;

constexpr std::uint32_t early_launch = 1, cooperative = 2; // bits of Launch::attributes

struct Launch
{
    std::uint32_t kernel; // number in the kernels of the spec
    std::array<Expression, 3> grid;
    std::array<std::uint32_t, 3> block, cluster;
    std::uint32_t shared_bytes;
    std::uint32_t attributes;
    std::vector<Argument> arguments;
};

// An implementation of a library: its name and version, scratch memory, and what the library makes it of.
struct LibraryCall
{
    std::string library, version;
    std::uint64_t workspace_bytes;
    std::vector<std::uint32_t> inputs; // of the operator, in the recipe's order
    std::vector<std::byte> recipe;
};

// What computes an operator: kernels in sequence, at least one, or a library.
using Work = std::variant<std::vector<Launch>, LibraryCall>;

struct Kernel
{
    std::string digest, entry, arch;
    std::vector<std::byte> image; // empty in a plan's spec
};

struct Tensor
{
    ElementType type;
    std::vector<Expression> shape;
};

struct Variant
{
    std::string name;
    std::vector<Format> formats; // of the inputs, then of the outputs
    Work work;
};

struct OperatorSpec
{
    struct Dimension
    {
        std::string name;
        std::uint32_t input, axis;
    };
    std::string name;
    std::vector<Dimension> dimensions;
    std::vector<Tensor> inputs, outputs;
    std::vector<Kernel> kernels;
    std::vector<Variant> variants;
};

struct PlanSpec
{
    struct Dimension
    {
        std::string name;
        std::int64_t tuned, smallest, largest;
    };
    struct Value
    {
        std::string name;
        ElementType type;
        std::uint32_t buffer;
        std::int64_t offset; // bytes
        std::vector<Expression> extents;
        std::vector<std::int64_t> strides; // elements
        std::int64_t padding;              // elements
    };
    struct Weight
    {
        std::string name;
        std::uint64_t begin, bytes; // within weights.safetensors
    };
    struct Port
    {
        std::uint32_t value;
        std::vector<Expression> shape;
    };
    struct Operand
    {
        bool is_weight;
        std::uint32_t number;
    };
    struct Step
    {
        std::string name;
        std::vector<Operand> inputs;
        std::vector<std::uint32_t> outputs; // values
        std::vector<std::uint32_t> predecessors;
        Work work;
    };
    std::string wpk, target, arch;
    std::vector<Dimension> dimensions;
    std::vector<Kernel> kernels;
    std::vector<Expression> buffers; // bytes
    std::vector<Value> values;
    std::vector<Weight> weights;
    std::vector<Port> inputs, outputs;
    std::vector<Step> steps;
};

// Read and check a spec; throw Error(damaged), whose text says what does not add up and where.
OperatorSpec read_operator(const std::byte* data, std::size_t size);
PlanSpec read_plan(const std::byte* data, std::size_t size);

} // namespace wpk
