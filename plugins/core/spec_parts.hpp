// The parts that the specs of operators and of plans share.
#pragma once

#include "plugins/core/byte_reader.hpp"
#include "plugins/core/spec.hpp"

namespace wpk
{

enum class SpecKind : std::uint16_t
{
    one_operator = 1,
    plan = 2
};

// What a launch may refer to.
struct Operands
{
    std::size_t dimensions, kernels, inputs, outputs;
};

// Fewest bytes that a part takes.
constexpr std::size_t least_expression = 4, least_text = 4, least_launch = 56, least_kernel = 16, least_work = 5;

// The body of a spec of this kind, its header checked.
ByteReader body_of(const std::byte* data, std::size_t size, SpecKind kind);

// Nothing may follow.
void require_end(const ByteReader& in);

ElementType read_element_type(ByteReader& in);
Expression read_expression(ByteReader& in, std::size_t dimensions);
std::vector<Expression> read_shape(ByteReader& in, std::size_t dimensions);
Kernel read_kernel(ByteReader& in);
// `owner` names what is computed, for the text.
Work read_work(ByteReader& in, const Operands& operands, const std::string& owner);

} // namespace wpk
