#include "plugins/libraries/cudnn_recipe.hpp"

#include "plugins/core/byte_reader.hpp"

namespace wpk
{
namespace
{

constexpr std::size_t least_tensor = 9, least_step = 12, least_argument = 5, least_named = 12, number_bytes = 8;
constexpr std::size_t most_axes = 8, most_inputs = 64;

class RecipeReader
{
public:
    explicit RecipeReader(ByteReader in) : in_(in) {}

    CudnnRecipe read()
    {
        CudnnRecipe recipe;
        recipe.engine = in_.i64("an engine");
        const auto knob = [this]
        {
            std::string name = in_.text("a knob's name");
            return std::pair(std::move(name), in_.i64("a knob's value"));
        };
        recipe.knobs = in_.sequence("knobs", least_named, knob);
        recipe.is_strict = in_.flag("strictness");
        recipe.inputs = in_.sequence("inputs", least_tensor, [this] { return tensor(); }, most_inputs);
        recipe.output = tensor();
        recipe.operands = in_.u32("operands");
        if (recipe.operands > recipe.inputs.size())
        {
            spec_is_damaged("has a recipe with " + std::to_string(recipe.operands) + " operands among "
                            + std::to_string(recipe.inputs.size()) + " inputs");
        }
        own_ = recipe.inputs.size() - recipe.operands;
        recipe.node = node();
        const bool is_pointwise = std::holds_alternative<PointwiseNode>(recipe.node);
        recipe.epilogue = steps(is_pointwise ? 1 : 0, 1 + recipe.operands);
        if (is_pointwise && recipe.epilogue.empty())
        {
            spec_is_damaged("has a recipe that computes nothing");
        }
        if (in_.left() != 0)
        {
            spec_is_damaged("has a recipe with " + std::to_string(in_.left()) + " bytes behind its end");
        }
        return recipe;
    }

private:
    CudnnTensor tensor()
    {
        const std::uint8_t type = in_.u8("an element type");
        const bool is_float = type >= static_cast<std::uint8_t>(ElementType::fp32)
                              && type <= static_cast<std::uint8_t>(ElementType::bf16);
        CudnnTensor tensor{static_cast<ElementType>(type), extents("extents"), extents("strides")};
        if (!is_float || tensor.dims.empty() || tensor.dims.size() != tensor.strides.size())
        {
            spec_is_damaged("has a recipe's tensor of type " + std::to_string(type) + " with "
                            + std::to_string(tensor.dims.size()) + " extents and "
                            + std::to_string(tensor.strides.size())
                            + " strides, allowed are types 1 to 3 and as many strides as extents");
        }
        return tensor;
    }

    std::vector<std::int64_t> extents(const char* field)
    {
        const auto extent = [this, field]
        {
            const std::int64_t value = in_.i64(field);
            if (value < 1)
            {
                spec_is_damaged(std::string("has a recipe's tensor with ") + std::to_string(value) + " among its "
                                + field + ", at least 1 is allowed");
            }
            return value;
        };
        return in_.sequence(field, number_bytes, extent, most_axes);
    }

    std::array<std::int64_t, 2> pair(const char* field)
    {
        const std::int64_t first = in_.i64(field);
        return {first, in_.i64(field)};
    }

    CudnnNode node()
    {
        const std::uint8_t kind = in_.u8("a node's kind");
        switch (kind)
        {
        case 0:
            require_own(2);
            return convolution();
        case 1:
            require_own(2);
            return MatmulNode{};
        case 2:
            return norm();
        case 3:
            return attention();
        case 4:
            require_own(1);
            return SoftmaxNode{in_.flag("a logarithm")};
        case 5:
        {
            std::string mode = in_.text("a reduction's mode");
            ReductionNode reduction{std::move(mode), steps(1, 1 + own_)};
            require_own(reduction.steps.empty() ? 1 : own_);
            return reduction;
        }
        case 6:
            require_own(0);
            return PointwiseNode{};
        default:
            spec_is_damaged("has a recipe's node of kind " + std::to_string(kind) + ", there are 0 to 6");
        }
    }

    ConvolutionNode convolution()
    {
        ConvolutionNode node{};
        node.before = pair("padding before");
        node.after = pair("padding after");
        node.stride = pair("a stride");
        node.dilation = pair("a dilation");
        node.is_backward = in_.flag("a direction");
        return node;
    }

    NormNode norm()
    {
        NormNode node;
        node.method = in_.text("a norm's method");
        node.epsilon = in_.f64("epsilon");
        node.is_shifted = in_.flag("a shift");
        require_own(node.is_shifted ? 3 : 2);
        return node;
    }

    AttentionNode attention()
    {
        AttentionNode node;
        node.scale = in_.f64("a scale");
        node.is_biased = in_.flag("a bias");
        if (own_ < 3)
        {
            require_own(3);
        }
        node.scores = steps(0, 1 + own_ - 3);
        if (node.scores.empty())
        {
            require_own(node.is_biased ? 4 : 3);
        }
        return node;
    }

    // A step reads values in front of it: numbers from `first`, below `count` where they are no steps.
    std::vector<PointwiseStep> steps(std::size_t first, std::size_t count)
    {
        const auto step = [&]
        {
            PointwiseStep each;
            each.method = in_.text("a step's method");
            each.arguments = in_.sequence("arguments", least_argument, [&] { return argument(first, count); });
            const auto option = [this]
            {
                std::string name = in_.text("an option's name");
                return std::pair(std::move(name), in_.f64("an option"));
            };
            each.options = in_.sequence("options", least_named, option);
            ++count;
            return each;
        };
        return in_.sequence("steps", least_step, step);
    }

    CudnnArgument argument(std::size_t first, std::size_t count)
    {
        if (in_.flag("the kind of an argument"))
        {
            return in_.f64("a constant");
        }
        const std::uint32_t number = index_below(in_.u32("an argument"), count, "value");
        if (number < first)
        {
            spec_is_damaged("has a recipe's step that reads value 0, which nothing computes");
        }
        return number;
    }

    void require_own(std::size_t count)
    {
        if (own_ != count)
        {
            spec_is_damaged(
                "has a recipe's node with " + std::to_string(own_) + " inputs, it takes " + std::to_string(count));
        }
    }

    ByteReader in_;
    std::size_t own_ = 0; // inputs that are the node's
};

} // namespace

CudnnRecipe read_cudnn_recipe(const std::vector<std::byte>& data)
{
    return RecipeReader(ByteReader(data.data(), data.size())).read();
}

} // namespace wpk
