#include "plugins/core/spec_parts.hpp"

namespace wpk
{
namespace
{

constexpr std::size_t least_dimension = 28, least_value = 33, least_weight = 20, least_port = 8,
                      least_step = 16 + least_work;
constexpr std::size_t least_operand = 5, number_bytes = 4, stride_bytes = 8;

class PlanReader
{
public:
    explicit PlanReader(ByteReader in) : in_(in) {}

    PlanSpec read()
    {
        plan_.wpk = in_.text("wpk's version");
        plan_.target = in_.text("its target");
        plan_.arch = in_.text("its architecture");
        plan_.dimensions = in_.sequence("dimensions", least_dimension, [this] { return dimension(); });
        plan_.kernels = in_.sequence("kernels", least_kernel, [this] { return kernel(); });
        plan_.buffers = read_shape(in_, plan_.dimensions.size());
        plan_.values = in_.sequence("values", least_value, [this] { return value(); });
        plan_.weights = in_.sequence("weights", least_weight, [this] { return weight(); });
        plan_.inputs = in_.sequence("inputs", least_port, [this] { return port(); });
        plan_.outputs = in_.sequence("outputs", least_port, [this] { return port(); });
        std::size_t number = 0;
        plan_.steps = in_.sequence("steps", least_step, [&] { return step(number++); });
        require_end(in_);
        return std::move(plan_);
    }

private:
    PlanSpec::Dimension dimension()
    {
        std::string name = in_.text("a dimension's name");
        PlanSpec::Dimension dimension{std::move(name), in_.i64("a dimension's size"), 0, 0};
        dimension.smallest = in_.i64("its smallest size");
        dimension.largest = in_.i64("its largest size");
        if (dimension.smallest < 1 || dimension.tuned < dimension.smallest || dimension.tuned > dimension.largest)
        {
            spec_is_damaged("tunes dimension '" + dimension.name + "' at " + std::to_string(dimension.tuned)
                            + ", its sizes are " + std::to_string(dimension.smallest) + " to "
                            + std::to_string(dimension.largest));
        }
        return dimension;
    }

    Kernel kernel()
    {
        Kernel kernel = read_kernel(in_);
        if (!kernel.image.empty())
        {
            spec_is_damaged("holds the image of kernel " + kernel.entry + ", a plan's images are its members");
        }
        return kernel;
    }

    PlanSpec::Value value()
    {
        PlanSpec::Value value{};
        value.name = in_.text("a value's name");
        value.type = read_element_type(in_);
        value.buffer = index_below(in_.u32("a value's buffer"), plan_.buffers.size(), "buffer");
        value.offset = in_.i64("a value's offset");
        value.extents = read_shape(in_, plan_.dimensions.size());
        value.strides = in_.sequence("strides", stride_bytes, [this] { return in_.i64("a stride"); });
        value.padding = in_.i64("a value's padding");
        if (value.extents.empty() || value.extents.size() != value.strides.size())
        {
            spec_is_damaged("has value '" + value.name + "' with " + std::to_string(value.extents.size())
                            + " extents and " + std::to_string(value.strides.size()) + " strides, as many are allowed");
        }
        return value;
    }

    PlanSpec::Weight weight()
    {
        std::string name = in_.text("a weight's name");
        const std::uint64_t begin = in_.u64("a weight's place");
        return {std::move(name), begin, in_.u64("a weight's size")};
    }

    std::uint32_t value_number()
    {
        return index_below(in_.u32("a value"), plan_.values.size(), "value");
    }

    PlanSpec::Port port()
    {
        const std::uint32_t number = value_number();
        return {number, read_shape(in_, plan_.dimensions.size())};
    }

    PlanSpec::Operand operand()
    {
        const bool is_weight = in_.flag("the kind of an operand");
        return {
            is_weight, is_weight ? index_below(in_.u32("a weight"), plan_.weights.size(), "weight") : value_number()};
    }

    // Its predecessors are steps before it.
    PlanSpec::Step step(std::size_t number)
    {
        PlanSpec::Step step;
        step.name = in_.text("a step's name");
        step.inputs = in_.sequence("operands", least_operand, [this] { return operand(); });
        step.outputs = in_.sequence("a step's outputs", number_bytes, [this] { return value_number(); });
        const auto predecessor = [&]
        {
            return index_below(in_.u32("a predecessor"), number, "predecessor");
        };
        step.predecessors = in_.sequence("predecessors", number_bytes, predecessor);
        const Operands operands{plan_.dimensions.size(), plan_.kernels.size(), step.inputs.size(), step.outputs.size()};
        step.work = read_work(in_, operands, "step '" + step.name + "'");
        return step;
    }

    ByteReader in_;
    PlanSpec plan_;
};

} // namespace

PlanSpec read_plan(const std::byte* data, std::size_t size)
{
    return PlanReader(body_of(data, size, SpecKind::plan)).read();
}

} // namespace wpk
