#include "plugins/libraries/cudnn_graph.hpp"

#include <map>

#include "plugins/core/byte_reader.hpp"

namespace wpk
{
namespace
{

using frontend::DataType_t;
using frontend::KnobType_t;
using frontend::PointwiseMode_t;
using frontend::ReductionMode_t;
using frontend::graph::Graph;
using frontend::graph::Pointwise_attributes;
using Value = std::shared_ptr<frontend::graph::Tensor_attributes>;
using Values = std::vector<Value>;

// By the names that wpk/libraries/cudnn_pointwise.py has for them.
const std::map<std::string, PointwiseMode_t> modes = {
    {"abs", PointwiseMode_t::ABS},
    {"add", PointwiseMode_t::ADD},
    {"ceil", PointwiseMode_t::CEIL},
    {"cos", PointwiseMode_t::COS},
    {"div", PointwiseMode_t::DIV},
    {"elu", PointwiseMode_t::ELU_FWD},
    {"erf", PointwiseMode_t::ERF},
    {"exp", PointwiseMode_t::EXP},
    {"floor", PointwiseMode_t::FLOOR},
    {"gelu", PointwiseMode_t::GELU_FWD},
    {"gelu_approx_tanh", PointwiseMode_t::GELU_APPROX_TANH_FWD},
    {"identity", PointwiseMode_t::IDENTITY},
    {"leaky_relu", PointwiseMode_t::RELU_FWD},
    {"log", PointwiseMode_t::LOG},
    {"max", PointwiseMode_t::MAX},
    {"min", PointwiseMode_t::MIN},
    {"mod", PointwiseMode_t::MOD},
    {"mul", PointwiseMode_t::MUL},
    {"neg", PointwiseMode_t::NEG},
    {"pow", PointwiseMode_t::POW},
    {"reciprocal", PointwiseMode_t::RECIPROCAL},
    {"relu", PointwiseMode_t::RELU_FWD},
    {"sigmoid", PointwiseMode_t::SIGMOID_FWD},
    {"sin", PointwiseMode_t::SIN},
    {"softplus", PointwiseMode_t::SOFTPLUS_FWD},
    {"sqrt", PointwiseMode_t::SQRT},
    {"sub", PointwiseMode_t::SUB},
    {"swish", PointwiseMode_t::SWISH_FWD},
    {"tanh", PointwiseMode_t::TANH_FWD},
};

const std::map<std::string, ReductionMode_t> reductions = {
    {"ADD", ReductionMode_t::ADD},
    {"AVG", ReductionMode_t::AVG},
    {"MAX", ReductionMode_t::MAX},
    {"MIN", ReductionMode_t::MIN},
    {"MUL", ReductionMode_t::MUL},
};

const std::map<std::string, KnobType_t> knobs = {
    {"SWIZZLE", KnobType_t::SWIZZLE},
    {"TILE_SIZE", KnobType_t::TILE_SIZE},
    {"EDGE", KnobType_t::EDGE},
    {"MULTIPLY", KnobType_t::MULTIPLY},
    {"SPLIT_K_BUF", KnobType_t::SPLIT_K_BUF},
    {"TILEK", KnobType_t::TILEK},
    {"STAGES", KnobType_t::STAGES},
    {"REDUCTION_MODE", KnobType_t::REDUCTION_MODE},
    {"SPLIT_K_SLC", KnobType_t::SPLIT_K_SLC},
    {"IDX_MODE", KnobType_t::IDX_MODE},
    {"SPECFILT", KnobType_t::SPECFILT},
    {"KERNEL_CFG", KnobType_t::KERNEL_CFG},
    {"WORKSPACE", KnobType_t::WORKSPACE},
    {"TILE_CGA_M", KnobType_t::TILE_CGA_M},
    {"TILE_CGA_N", KnobType_t::TILE_CGA_N},
    {"BLOCK_SIZE", KnobType_t::BLOCK_SIZE},
    {"OCCUPANCY", KnobType_t::OCCUPANCY},
    {"ARRAY_SIZE_PER_THREAD", KnobType_t::ARRAY_SIZE_PER_THREAD},
    {"SPLIT_COLS", KnobType_t::SPLIT_COLS},
    {"TILE_ROWS", KnobType_t::TILE_ROWS},
    {"TILE_COLS", KnobType_t::TILE_COLS},
    {"LOAD_SIZE", KnobType_t::LOAD_SIZE},
    {"CTA_COUNT", KnobType_t::CTA_COUNT},
    {"STREAM_K", KnobType_t::STREAM_K},
    {"SPLIT_P_SLC", KnobType_t::SPLIT_P_SLC},
    {"TILE_M", KnobType_t::TILE_M},
    {"TILE_N", KnobType_t::TILE_N},
    {"WARP_SPEC_CFG", KnobType_t::WARP_SPEC_CFG},
};

template <typename Named>
Named named(const std::map<std::string, Named>& table, const std::string& name, const char* what)
{
    const auto found = table.find(name);
    if (found == table.end())
    {
        spec_is_damaged(std::string("has a recipe with ") + what + " '" + name + "', which cuDNN does not have");
    }
    return found->second;
}

DataType_t type_of(ElementType type)
{
    switch (type)
    {
    case ElementType::fp16:
        return DataType_t::HALF;
    case ElementType::bf16:
        return DataType_t::BFLOAT16;
    default:
        return DataType_t::FLOAT; // a recipe has no other
    }
}

std::vector<std::int64_t> listed(const std::array<std::int64_t, 2>& pair)
{
    return {pair[0], pair[1]};
}

class Builder
{
public:
    explicit Builder(const CudnnRecipe& recipe) : recipe_(recipe) {}

    std::shared_ptr<Graph> build()
    {
        graph_->set_io_data_type(type_of(recipe_.inputs.empty() ? recipe_.output.type : recipe_.inputs[0].type))
            .set_intermediate_data_type(DataType_t::FLOAT)
            .set_compute_data_type(DataType_t::FLOAT);
        Values own;
        for (std::size_t number = 0; number < recipe_.inputs.size(); ++number)
        {
            own.push_back(input(number));
        }
        const auto first = own.end() - recipe_.operands;
        Values values(first, own.end());
        own.erase(first, own.end());
        Value result = node(own);
        const bool is_sized = std::holds_alternative<ConvolutionNode>(recipe_.node)
                              || std::holds_alternative<ReductionNode>(recipe_.node);
        if (is_sized && !recipe_.epilogue.empty())
        {
            result->set_dim(recipe_.output.dims);
        }
        values.insert(values.begin(), result);
        result = after(*graph_, recipe_.epilogue, values);
        result->set_dim(recipe_.output.dims).set_stride(recipe_.output.strides);
        result->set_output(true).set_data_type(type_of(recipe_.output.type));
        result->set_uid(static_cast<std::int64_t>(recipe_.inputs.size()) + 1);
        return graph_;
    }

private:
    Value input(std::size_t number)
    {
        const CudnnTensor& tensor = recipe_.inputs[number];
        const auto uid = static_cast<std::int64_t>(number) + 1;
        return graph_->tensor(frontend::graph::Tensor_attributes()
                .set_name("input_" + std::to_string(uid))
                .set_dim(tensor.dims)
                .set_stride(tensor.strides)
                .set_data_type(type_of(tensor.type))
                .set_uid(uid));
    }

    static Value constant(Graph& graph, double number)
    {
        return graph.tensor(static_cast<float>(number), frontend::graph::ScalarType::RUNTIME_PARAM);
    }

    // The last value; each step adds one.
    static Value after(Graph& graph, const std::vector<PointwiseStep>& steps, Values values)
    {
        for (const PointwiseStep& step : steps)
        {
            Pointwise_attributes attributes;
            attributes.set_mode(named(modes, step.method, "an operation"));
            for (const auto& [name, value] : step.options)
            {
                set_option(attributes, name, static_cast<float>(value));
            }
            Values arguments;
            for (const CudnnArgument& argument : step.arguments)
            {
                const auto* number = std::get_if<std::uint32_t>(&argument);
                arguments.push_back(number != nullptr ? values[*number] : constant(graph, std::get<double>(argument)));
            }
            values.push_back(pointwise(graph, arguments, attributes));
        }
        return steps.empty() ? values.front() : values.back();
    }

    static void set_option(Pointwise_attributes& attributes, const std::string& name, float value)
    {
        if (name == "lower_clip")
        {
            attributes.set_relu_lower_clip(value);
        }
        else if (name == "upper_clip")
        {
            attributes.set_relu_upper_clip(value);
        }
        else if (name == "negative_slope")
        {
            attributes.set_relu_lower_clip_slope(value);
        }
        else if (name == "swish_beta")
        {
            attributes.set_swish_beta(value);
        }
        else
        {
            spec_is_damaged("has a recipe with an option '" + name + "', which cuDNN does not have");
        }
    }

    static Value pointwise(Graph& graph, const Values& arguments, Pointwise_attributes attributes)
    {
        switch (arguments.size())
        {
        case 1:
            return graph.pointwise(arguments[0], std::move(attributes));
        case 2:
            return graph.pointwise(arguments[0], arguments[1], std::move(attributes));
        default:
            spec_is_damaged("has a recipe's step with " + std::to_string(arguments.size())
                            + " arguments, 1 or 2 are "
                              "allowed");
        }
    }

    Value node(const Values& inputs)
    {
        return std::visit([&](const auto& each) { return made(each, inputs); }, recipe_.node);
    }

    Value made(const ConvolutionNode& node, const Values& inputs)
    {
        const auto with_sizes = [&](auto attributes)
        {
            attributes.set_pre_padding(listed(node.before)).set_post_padding(listed(node.after));
            attributes.set_stride(listed(node.stride)).set_dilation(listed(node.dilation));
            return attributes;
        };
        if (node.is_backward)
        {
            return graph_->conv_dgrad(inputs[0], inputs[1], with_sizes(frontend::graph::Conv_dgrad_attributes()));
        }
        return graph_->conv_fprop(inputs[0], inputs[1], with_sizes(frontend::graph::Conv_fprop_attributes()));
    }

    Value made(const MatmulNode&, const Values& inputs)
    {
        return graph_->matmul(inputs[0], inputs[1], frontend::graph::Matmul_attributes());
    }

    Value made(const NormNode& node, const Values& inputs)
    {
        constexpr auto phase = frontend::NormFwdPhase_t::INFERENCE;
        Value shift = node.is_shifted ? inputs[2] : nullptr;
        Value epsilon = constant(*graph_, node.epsilon);
        if (node.method == "layernorm")
        {
            auto attributes = frontend::graph::Layernorm_attributes().set_forward_phase(phase).set_epsilon(epsilon);
            return graph_->layernorm(inputs[0], inputs[1], shift, std::move(attributes))[0];
        }
        if (node.method == "rmsnorm")
        {
            auto attributes = frontend::graph::Rmsnorm_attributes().set_forward_phase(phase).set_epsilon(epsilon);
            attributes.set_bias(shift);
            return graph_->rmsnorm(inputs[0], inputs[1], std::move(attributes))[0];
        }
        spec_is_damaged("has a recipe with a norm '" + node.method + "', which cuDNN does not have");
    }

    Value made(const AttentionNode& node, const Values& inputs)
    {
        auto attributes = frontend::graph::SDPA_attributes().set_generate_stats(false);
        if (node.scores.empty())
        {
            attributes.set_attn_scale(static_cast<float>(node.scale));
            attributes.set_bias(node.is_biased ? inputs[3] : nullptr);
        }
        else
        {
            // The node hands over a graph of its own to put the steps on.
            const Values operands(inputs.begin() + 3, inputs.end());
            attributes.set_score_mod(
                [steps = node.scores, operands](const std::shared_ptr<Graph>& graph, const Value& products)
                {
                    Values values{products};
                    values.insert(values.end(), operands.begin(), operands.end());
                    return after(*graph, steps, values);
                });
        }
        return graph_->sdpa(inputs[0], inputs[1], inputs[2], std::move(attributes))[0];
    }

    Value made(const SoftmaxNode& node, const Values& inputs)
    {
        std::vector<std::int64_t> rows = recipe_.inputs[0].dims, strides(rows.size(), 1);
        rows.back() = 1;
        for (std::size_t axis = rows.size() - 1; axis > 0; --axis)
        {
            strides[axis - 1] = strides[axis] * rows[axis];
        }
        const auto reduced = [&](const Value& values, ReductionMode_t mode)
        {
            Value result = graph_->reduction(values, frontend::graph::Reduction_attributes().set_mode(mode));
            result->set_dim(rows).set_stride(strides);
            return result;
        };
        const auto computed = [&](PointwiseMode_t mode, const Values& arguments)
        {
            return pointwise(*graph_, arguments, Pointwise_attributes().set_mode(mode));
        };
        const Value below = computed(PointwiseMode_t::SUB, {inputs[0], reduced(inputs[0], ReductionMode_t::MAX)});
        const Value powers = computed(PointwiseMode_t::EXP, {below});
        const Value total = reduced(powers, ReductionMode_t::ADD);
        return node.is_log ? computed(PointwiseMode_t::SUB, {below, computed(PointwiseMode_t::LOG, {total})})
                           : computed(PointwiseMode_t::DIV, {powers, total});
    }

    Value made(const ReductionNode& node, const Values& inputs)
    {
        Values values{nullptr};
        values.insert(values.end(), inputs.begin(), inputs.end());
        const Value result = node.steps.empty() ? inputs[0] : after(*graph_, node.steps, values);
        const ReductionMode_t mode = named(reductions, node.mode, "a reduction");
        return graph_->reduction(result, frontend::graph::Reduction_attributes().set_mode(mode));
    }

    Value made(const PointwiseNode&, const Values&)
    {
        return nullptr;
    }

    const CudnnRecipe& recipe_;
    std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
};

} // namespace

std::shared_ptr<Graph> build_graph(const CudnnRecipe& recipe)
{
    return Builder(recipe).build();
}

KnobType_t knob_of(const std::string& name)
{
    return named(knobs, name, "a knob");
}

} // namespace wpk
