#include <algorithm>

#include "plugins/core/spec_parts.hpp"

namespace wpk
{
namespace
{

// CUDA C++ programming guide, "Technical specifications per compute capability", and of clusters the largest that any
// GPU takes; wpk/plan/checks holds plans to the limits of their GPU.
constexpr std::uint64_t most_threads = 1024, most_block[] = {1024, 1024, 64}, most_cluster = 16;
constexpr std::uint32_t most_shared = 228 * 1024, known_attributes = early_launch | cooperative;
constexpr std::size_t most_arguments = 512, most_rank = 5, least_argument = 5;

std::array<std::uint32_t, 3> read_extents(ByteReader& in, const char* field)
{
    std::array<std::uint32_t, 3> extents{};
    for (std::uint32_t& extent : extents)
    {
        extent = in.u32(field);
        if (extent == 0)
        {
            spec_is_damaged(std::string("has ") + field + " of 0, at least 1 is allowed");
        }
    }
    return extents;
}

std::uint64_t product(const std::array<std::uint32_t, 3>& extents) noexcept
{
    // At most 2^96 without the clamp: a factor beyond the limit is already too much.
    std::uint64_t all = 1;
    for (const std::uint32_t extent : extents)
    {
        all *= std::min<std::uint64_t>(extent, 1 << 20);
    }
    return all;
}

void check_sizes(const Launch& launch)
{
    for (std::size_t axis = 0; axis < launch.block.size(); ++axis)
    {
        if (launch.block[axis] > most_block[axis])
        {
            spec_is_damaged("has a block of " + std::to_string(launch.block[axis]) + " threads along axis "
                            + std::to_string(axis) + ", at most " + std::to_string(most_block[axis]) + " are allowed");
        }
    }
    if (product(launch.block) > most_threads)
    {
        spec_is_damaged("has a block of " + std::to_string(product(launch.block)) + " threads, at most "
                        + std::to_string(most_threads) + " are allowed");
    }
    if (product(launch.cluster) > most_cluster)
    {
        spec_is_damaged("has a cluster of " + std::to_string(product(launch.cluster)) + " blocks, at most "
                        + std::to_string(most_cluster) + " are allowed");
    }
    if (launch.shared_bytes > most_shared)
    {
        spec_is_damaged("asks for " + std::to_string(launch.shared_bytes) + " bytes of shared memory, at most "
                        + std::to_string(most_shared) + " are allowed");
    }
    if ((launch.attributes & ~known_attributes) != 0)
    {
        spec_is_damaged("has launch attributes " + std::to_string(launch.attributes) + ", known are "
                        + std::to_string(known_attributes));
    }
}

Im2col read_im2col(ByteReader& in, std::size_t rank)
{
    Im2col mode;
    mode.lower = in.sequence("lower corners", 4, [&] { return in.i32("a lower corner"); });
    mode.upper = in.sequence("upper corners", 4, [&] { return in.i32("an upper corner"); });
    mode.steps = in.sequence("steps", 4, [&] { return in.u32("a step"); });
    if (rank < 3 || mode.lower.size() != rank - 2 || mode.upper.size() != rank - 2 || mode.steps.size() != rank - 2)
    {
        spec_is_damaged("has a tensor map of " + std::to_string(rank) + " dimensions with an im2col mode of "
                        + std::to_string(mode.lower.size()) + ", " + std::to_string(mode.upper.size()) + " and "
                        + std::to_string(mode.steps.size()) + " numbers, one for each spatial dimension is allowed");
    }
    return mode;
}

TensorMapArgument read_tensor_map(ByteReader& in, const Operands& operands)
{
    TensorMapArgument map{};
    map.index = index_below(in.u32("a tensor map's input"), operands.inputs, "input");
    map.element_bytes = in.u32("a tensor map's element size");
    map.shape = read_shape(in, operands.dimensions);
    map.strides = read_shape(in, operands.dimensions);
    map.box = in.sequence("box extents", 4, [&] { return in.u32("a box extent"); });
    map.swizzle = in.u32("a swizzle");
    map.to_tf32 = in.flag("to_tf32");
    const std::size_t rank = map.shape.size();
    const bool is_im2col = in.flag("im2col");
    if (is_im2col)
    {
        map.im2col = read_im2col(in, rank);
    }
    if (rank < 1 || rank > most_rank || map.strides.size() + 1 != rank || map.box.size() != (is_im2col ? 2 : rank))
    {
        spec_is_damaged("has a tensor map of " + std::to_string(rank) + " dimensions, "
                        + std::to_string(map.strides.size()) + " strides and a box of " + std::to_string(map.box.size())
                        + ", which do not belong together");
    }
    return map;
}

Argument read_argument(ByteReader& in, const Operands& operands)
{
    const std::uint8_t kind = in.u8("the kind of an argument");
    switch (kind)
    {
    case 0:
        return InputArgument{index_below(in.u32("an input"), operands.inputs, "input")};
    case 1:
        return SizeArgument{read_expression(in, operands.dimensions)};
    case 2:
        return read_tensor_map(in, operands);
    case 3:
        return OutputArgument{index_below(in.u32("an output"), operands.outputs, "output")};
    case 4:
        return WorkspaceArgument{read_expression(in, operands.dimensions)};
    case 5:
        return CounterArgument{read_expression(in, operands.dimensions)};
    default:
        spec_is_damaged("has an argument of kind " + std::to_string(kind) + ", there are 0 to 5");
    }
}

Launch read_launch(ByteReader& in, const Operands& operands)
{
    Launch launch{};
    launch.kernel = index_below(in.u32("a launch's kernel"), operands.kernels, "kernel");
    for (Expression& extent : launch.grid)
    {
        extent = read_expression(in, operands.dimensions);
    }
    launch.block = read_extents(in, "a block");
    launch.cluster = read_extents(in, "a cluster");
    launch.shared_bytes = in.u32("shared memory");
    launch.attributes = in.u32("launch attributes");
    check_sizes(launch);
    launch.arguments =
        in.sequence("arguments", least_argument, [&] { return read_argument(in, operands); }, most_arguments);
    const auto comes_before = [](const Argument& one, const Argument& other)
    {
        return one.index() < other.index();
    };
    if (!std::is_sorted(launch.arguments.begin(), launch.arguments.end(), comes_before))
    {
        spec_is_damaged("has arguments out of order: inputs, sizes, tensor maps, outputs, workspace, counters");
    }
    return launch;
}

} // namespace

Work read_work(ByteReader& in, const Operands& operands, const std::string& owner)
{
    if (in.flag("the kind of work"))
    {
        LibraryCall call;
        call.library = in.text("a library's name");
        call.version = in.text("a library's version");
        call.workspace_bytes = in.u64("a library's workspace");
        const auto input = [&]
        {
            return index_below(in.u32("a library's input"), operands.inputs, "input");
        };
        call.inputs = in.sequence("a library's inputs", sizeof(std::uint32_t), input);
        call.recipe = in.bytes("a library's recipe");
        return call;
    }
    std::vector<Launch> launches = in.sequence("launches", least_launch, [&] { return read_launch(in, operands); });
    if (launches.empty())
    {
        spec_is_damaged("has " + owner + " without a launch");
    }
    return launches;
}

} // namespace wpk
