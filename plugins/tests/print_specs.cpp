// Reads specs from the standard input, each a u32 of its bytes and the bytes, and answers each with a line of JSON:
// what was read, its shapes evaluated for the dimensions that the arguments give; or why it was refused.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <type_traits>

#include "plugins/core/error.hpp"
#include "plugins/core/launcher.hpp"
#include "plugins/core/spec.hpp"
#include "plugins/libraries/cudnn_recipe.hpp"

namespace
{

using namespace wpk;

std::string quoted(const std::string& text)
{
    std::string result = "\"";
    for (const char letter : text)
    {
        char escaped[8];
        const bool is_plain = static_cast<unsigned char>(letter) >= 0x20 && letter != '"' && letter != '\\';
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned char>(letter));
        result += is_plain ? std::string(1, letter) : escaped;
    }
    return result + "\"";
}

template <typename Items, typename Say>
std::string listed(const Items& items, Say say)
{
    std::string result;
    for (const auto& item : items)
    {
        result += (result.empty() ? "" : ", ") + say(item);
    }
    return "[" + result + "]";
}

template <typename Number>
std::string number(const Number& value)
{
    if constexpr (std::is_enum_v<Number>)
    {
        return std::to_string(static_cast<int>(value));
    }
    else
    {
        return std::to_string(value);
    }
}

const auto say_number = [](const auto& value)
{
    return number(value);
};

class Printer
{
public:
    explicit Printer(Dims dims) : dims_(std::move(dims)) {}

    std::string said(const OperatorSpec& spec) const
    {
        const auto dimension = [](const OperatorSpec::Dimension& each)
        {
            return "[" + quoted(each.name) + ", " + number(each.input) + ", " + number(each.axis) + "]";
        };
        return "{\"name\": " + quoted(spec.name) + ", \"dimensions\": " + listed(spec.dimensions, dimension)
               + ", \"inputs\": " + tensors(spec.inputs) + ", \"outputs\": " + tensors(spec.outputs) + ", \"kernels\": "
               + listed(spec.kernels, [this](const Kernel& each) { return kernel(each); }) + ", \"variants\": "
               + listed(spec.variants, [this](const Variant& each) { return variant(each); }) + "}";
    }

    std::string said(const PlanSpec& plan) const
    {
        const auto value = [this](const PlanSpec::Value& each)
        {
            return "[" + quoted(each.name) + ", " + number(each.type) + ", " + number(each.buffer) + ", "
                   + number(each.offset) + ", " + shape(each.extents) + ", " + listed(each.strides, say_number) + ", "
                   + number(each.padding) + "]";
        };
        const auto weight = [](const PlanSpec::Weight& each)
        {
            return "[" + quoted(each.name) + ", " + number(each.begin) + ", " + number(each.bytes) + "]";
        };
        const auto port = [this](const PlanSpec::Port& each)
        {
            return "[" + number(each.value) + ", " + shape(each.shape) + "]";
        };
        const auto dimension = [](const PlanSpec::Dimension& each)
        {
            return "[" + quoted(each.name) + ", " + number(each.tuned) + ", " + number(each.smallest) + ", "
                   + number(each.largest) + "]";
        };
        return "{\"wpk\": " + quoted(plan.wpk) + ", \"target\": " + quoted(plan.target)
               + ", \"arch\": " + quoted(plan.arch) + ", \"dimensions\": " + listed(plan.dimensions, dimension)
               + ", \"kernels\": " + listed(plan.kernels, [this](const Kernel& each) { return kernel(each); })
               + ", \"buffers\": " + shape(plan.buffers) + ", \"values\": " + listed(plan.values, value)
               + ", \"weights\": " + listed(plan.weights, weight) + ", \"inputs\": " + listed(plan.inputs, port)
               + ", \"outputs\": " + listed(plan.outputs, port)
               + ", \"steps\": " + listed(plan.steps, [this](const PlanSpec::Step& each) { return step(each); }) + "}";
    }

private:
    std::string sized(const Expression& expression) const
    {
        try
        {
            return number(evaluate(expression, dims_));
        }
        catch (const Error& error)
        {
            return quoted(error.what());
        }
    }

    std::string shape(const std::vector<Expression>& extents) const
    {
        return listed(extents, [this](const Expression& each) { return sized(each); });
    }

    std::string tensors(const std::vector<Tensor>& tensors) const
    {
        return listed(
            tensors, [this](const Tensor& each) { return "[" + number(each.type) + ", " + shape(each.shape) + "]"; });
    }

    std::string kernel(const Kernel& each) const
    {
        return "[" + quoted(each.digest) + ", " + quoted(each.entry) + ", " + quoted(each.arch) + ", "
               + number(each.image.size()) + "]";
    }

    std::string variant(const Variant& each) const
    {
        return "[" + quoted(each.name) + ", " + listed(each.formats, say_number) + ", " + work(each.work) + "]";
    }

    std::string step(const PlanSpec::Step& each) const
    {
        const auto operand = [](const PlanSpec::Operand& one)
        {
            return (one.is_weight ? "[1, " : "[0, ") + number(one.number) + "]";
        };
        return "[" + quoted(each.name) + ", " + listed(each.inputs, operand) + ", " + listed(each.outputs, say_number)
               + ", " + listed(each.predecessors, say_number) + ", " + work(each.work) + "]";
    }

    std::string work(const Work& work) const
    {
        if (const auto* call = std::get_if<LibraryCall>(&work))
        {
            return "{\"library\": [" + quoted(call->library) + ", " + quoted(call->version) + "], \"workspace\": "
                   + number(call->workspace_bytes) + ", \"inputs\": " + listed(call->inputs, say_number)
                   + ", \"recipe\": " + said(read_cudnn_recipe(call->recipe)) + "}";
        }
        return listed(launches_of(work), [this](const Launch& each) { return launch(each); });
    }

    static std::string said(const CudnnRecipe& recipe)
    {
        const auto knob = [](const auto& each)
        {
            return "[" + quoted(each.first) + ", " + number(each.second) + "]";
        };
        return "[" + number(recipe.engine) + ", " + listed(recipe.knobs, knob) + ", " + number(recipe.is_strict) + ", "
               + listed(recipe.inputs, tensor) + ", " + tensor(recipe.output) + ", " + number(recipe.operands) + ", "
               + "[" + number(recipe.node.index())
               + std::visit([](const auto& each) { return node(each); }, recipe.node) + "], "
               + listed(recipe.epilogue, pointwise) + "]";
    }

    static std::string tensor(const CudnnTensor& each)
    {
        return "[" + number(each.type) + ", " + listed(each.dims, say_number) + ", " + listed(each.strides, say_number)
               + "]";
    }

    static std::string pointwise(const PointwiseStep& each)
    {
        const auto argument = [](const CudnnArgument& one)
        {
            const auto* value = std::get_if<std::uint32_t>(&one);
            return value != nullptr ? "[" + number(*value) + "]" : real(std::get<double>(one));
        };
        const auto option = [](const auto& one)
        {
            return "[" + quoted(one.first) + ", " + real(one.second) + "]";
        };
        return "[" + quoted(each.method) + ", " + listed(each.arguments, argument) + ", " + listed(each.options, option)
               + "]";
    }

    static std::string real(double value)
    {
        char text[32];
        std::snprintf(text, sizeof text, "%.17g", value);
        const std::string said = text;
        return said.find_first_of("in") == std::string::npos ? said : quoted(said);
    }

    static std::string node(const ConvolutionNode& each)
    {
        std::string said;
        for (const auto* pair : {&each.before, &each.after, &each.stride, &each.dilation})
        {
            said += ", " + listed(*pair, say_number);
        }
        return said + ", " + number(each.is_backward);
    }

    static std::string node(const MatmulNode&)
    {
        return "";
    }

    static std::string node(const NormNode& each)
    {
        return ", " + quoted(each.method) + ", " + real(each.epsilon) + ", " + number(each.is_shifted);
    }

    static std::string node(const AttentionNode& each)
    {
        return ", " + real(each.scale) + ", " + number(each.is_biased) + ", " + listed(each.scores, pointwise);
    }

    static std::string node(const SoftmaxNode& each)
    {
        return ", " + number(each.is_log);
    }

    static std::string node(const ReductionNode& each)
    {
        return ", " + quoted(each.mode) + ", " + listed(each.steps, pointwise);
    }

    static std::string node(const PointwiseNode&)
    {
        return "";
    }

    std::string launch(const Launch& each) const
    {
        return "[" + number(each.kernel) + ", "
               + listed(each.grid, [this](const Expression& one) { return sized(one); }) + ", "
               + listed(each.block, say_number) + ", " + listed(each.cluster, say_number) + ", "
               + number(each.shared_bytes) + ", " + number(each.attributes) + ", "
               + listed(each.arguments, [this](const Argument& one) { return argument(one); }) + "]";
    }

    std::string argument(const Argument& argument) const
    {
        const auto said = [this](const auto& each) -> std::string
        {
            using Kind = std::decay_t<decltype(each)>;
            if constexpr (std::is_same_v<Kind, TensorMapArgument>)
            {
                return map(each);
            }
            else if constexpr (std::is_same_v<Kind, SizeArgument>)
            {
                return sized(each.value);
            }
            else if constexpr (std::is_same_v<Kind, WorkspaceArgument>)
            {
                return sized(each.bytes);
            }
            else if constexpr (std::is_same_v<Kind, CounterArgument>)
            {
                return sized(each.count);
            }
            else
            {
                return number(each.index);
            }
        };
        return "[" + number(argument.index()) + ", " + std::visit(said, argument) + "]";
    }

    std::string map(const TensorMapArgument& each) const
    {
        const std::string mode = each.im2col ? "[" + listed(each.im2col->lower, say_number) + ", "
                                                   + listed(each.im2col->upper, say_number) + ", "
                                                   + listed(each.im2col->steps, say_number) + "]"
                                             : "null";
        return "[" + number(each.index) + ", " + number(each.element_bytes) + ", " + shape(each.shape) + ", "
               + shape(each.strides) + ", " + listed(each.box, say_number) + ", " + number(each.swizzle) + ", "
               + number(each.to_tf32) + ", " + mode + "]";
    }

    Dims dims_;
};

std::string answer(const std::vector<std::byte>& data, const Dims& dims)
{
    constexpr std::size_t kind_at = 6;
    const bool is_plan = data.size() > kind_at && data[kind_at] == std::byte{2};
    try
    {
        const Printer printer(dims);
        return is_plan ? printer.said(read_plan(data.data(), data.size()))
                       : printer.said(read_operator(data.data(), data.size()));
    }
    catch (const Error& error)
    {
        return "{\"error\": " + quoted(error.what()) + ", \"code\": " + number(error.code()) + "}";
    }
}

} // namespace

int main(int count, char** words)
{
    Dims dims;
    for (int i = 1; i < count; ++i)
    {
        dims.push_back(std::atoll(words[i]));
    }
    std::uint32_t size = 0;
    while (std::fread(&size, sizeof size, 1, stdin) == 1)
    {
        std::vector<std::byte> data(size);
        if (std::fread(data.data(), 1, size, stdin) != size)
        {
            return 1;
        }
        std::printf("%s\n", answer(data, dims).c_str());
    }
    return 0;
}
