// Reads specs from the standard input, each a u32 of its bytes and the bytes, and answers each with a line of JSON:
// what was read, its shapes evaluated for the dimensions that the arguments give; or why it was refused.
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <type_traits>

#include "plugins/core/error.hpp"
#include "plugins/core/spec.hpp"

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
            return "[" + quoted(each.name) + ", " + number(each.tuned) + "]";
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
        return "[" + quoted(each.name) + ", " + listed(each.formats, say_number) + ", " + launches(each.launches) + "]";
    }

    std::string step(const PlanSpec::Step& each) const
    {
        const auto operand = [](const PlanSpec::Operand& one)
        {
            return (one.is_weight ? "[1, " : "[0, ") + number(one.number) + "]";
        };
        const auto* library = std::get_if<PlanSpec::Library>(&each.work);
        return "[" + quoted(each.name) + ", " + listed(each.inputs, operand) + ", " + listed(each.outputs, say_number)
               + ", " + number(each.workspace_bytes) + ", " + listed(each.predecessors, say_number) + ", "
               + (library != nullptr
                       ? "{\"library\": [" + quoted(library->name) + ", " + quoted(library->version) + "]}"
                       : launches(std::get<std::vector<Launch>>(each.work)))
               + "]";
    }

    std::string launches(const std::vector<Launch>& all) const
    {
        return listed(all, [this](const Launch& each) { return launch(each); });
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
