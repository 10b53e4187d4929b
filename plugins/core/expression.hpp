// Sizes over free dimensions: TensorRT's nine dimension operations, in reverse Polish order.
#pragma once

#include <cstdint>
#include <vector>

namespace wpk
{

enum class Operation : std::uint8_t
{
    constant,
    dimension,
    sum,
    prod,
    max,
    sub,
    min,
    ceil_div,
    floor_div,
    equal,
    less,
};

// `value` is the constant, or the number of the dimension; operations have none.
struct Instruction
{
    Operation operation;
    std::int64_t value;
};

using Expression = std::vector<Instruction>; // of at most `most_instructions`
using Dims = std::vector<std::int64_t>;

constexpr std::size_t most_instructions = 1024;

// Throws Error(damaged) unless the expression leaves one number and names only `dimensions` many dimensions.
void check(const Expression& expression, std::size_t dimensions);

// The value for sizes of the dimensions, as wpk/dims.py computes it: divisions round to minus and to plus infinity.
// Throws Error(invalid_argument) on a division by zero and where 64 bits do not hold a number.
std::int64_t evaluate(const Expression& expression, const Dims& dims);

} // namespace wpk
