#include "plugins/core/expression.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

constexpr auto least = std::numeric_limits<std::int64_t>::min();

bool is_operand(const Instruction& instruction) noexcept
{
    return instruction.operation == Operation::constant || instruction.operation == Operation::dimension;
}

const char* name_of(Operation operation) noexcept
{
    constexpr const char* names[] = {
        "constant", "dimension", "sum", "prod", "max", "sub", "min", "ceil_div", "floor_div", "equal", "less"};
    return names[static_cast<std::size_t>(operation)];
}

[[noreturn]] void refuse(Operation operation, std::int64_t left, std::int64_t right, const char* why)
{
    throw Error(Code::invalid_argument, std::string("a size is ") + name_of(operation) + "(" + std::to_string(left)
                                            + ", " + std::to_string(right) + "), which " + why
                                            + "; fix: give smaller tensors");
}

// Rounded to minus infinity; the caller excludes a divisor of 0 and the one quotient that 64 bits do not hold.
std::int64_t floor_of(std::int64_t left, std::int64_t right) noexcept
{
    const std::int64_t quotient = left / right;
    return left % right != 0 && (left < 0) != (right < 0) ? quotient - 1 : quotient;
}

std::int64_t ceil_of(std::int64_t left, std::int64_t right) noexcept
{
    const std::int64_t quotient = left / right;
    return left % right != 0 && (left < 0) == (right < 0) ? quotient + 1 : quotient;
}

std::int64_t apply(Operation operation, std::int64_t left, std::int64_t right)
{
    constexpr const char* too_large = "64 bits do not hold";
    std::int64_t result = 0;
    bool overflows = false;
    switch (operation)
    {
    case Operation::sum:
        overflows = __builtin_add_overflow(left, right, &result);
        break;
    case Operation::sub:
        overflows = __builtin_sub_overflow(left, right, &result);
        break;
    case Operation::prod:
        overflows = __builtin_mul_overflow(left, right, &result);
        break;
    case Operation::max:
        return std::max(left, right);
    case Operation::min:
        return std::min(left, right);
    case Operation::equal:
        return left == right;
    case Operation::less:
        return left < right;
    case Operation::ceil_div:
    case Operation::floor_div:
        if (right == 0)
        {
            refuse(operation, left, right, "divides by zero");
        }
        overflows = left == least && right == -1;
        if (!overflows)
        {
            result = operation == Operation::floor_div ? floor_of(left, right) : ceil_of(left, right);
        }
        break;
    case Operation::constant:
    case Operation::dimension:
        break;
    }
    if (overflows)
    {
        refuse(operation, left, right, too_large);
    }
    return result;
}

[[noreturn]] void damaged(const std::string& what)
{
    throw Error(Code::damaged, "an expression " + what + "; fix: write the spec again with wpk");
}

} // namespace

void check(const Expression& expression, std::size_t dimensions)
{
    if (expression.size() > most_instructions)
    {
        damaged("has " + std::to_string(expression.size()) + " instructions, at most "
                + std::to_string(most_instructions) + " are allowed");
    }
    std::size_t depth = 0;
    for (const Instruction& instruction : expression)
    {
        if (instruction.operation > Operation::less)
        {
            damaged("has the operation " + std::to_string(static_cast<unsigned>(instruction.operation))
                    + ", the last one is " + std::to_string(static_cast<unsigned>(Operation::less)));
        }
        if (is_operand(instruction))
        {
            const bool is_free = instruction.operation == Operation::dimension;
            if (is_free && (instruction.value < 0 || static_cast<std::size_t>(instruction.value) >= dimensions))
            {
                damaged("names dimension " + std::to_string(instruction.value) + " of " + std::to_string(dimensions));
            }
            ++depth;
            continue;
        }
        if (depth < 2)
        {
            damaged(std::string("applies ") + name_of(instruction.operation) + " to " + std::to_string(depth)
                    + " numbers, it takes two");
        }
        --depth;
    }
    if (depth != 1)
    {
        damaged("leaves " + std::to_string(depth) + " numbers, one is allowed");
    }
}

std::int64_t evaluate(const Expression& expression, const Dims& dims)
{
    std::vector<std::int64_t> stack;
    for (const Instruction& instruction : expression)
    {
        if (is_operand(instruction))
        {
            const bool is_free = instruction.operation == Operation::dimension;
            stack.push_back(is_free ? dims.at(static_cast<std::size_t>(instruction.value)) : instruction.value);
            continue;
        }
        const std::int64_t right = stack.back();
        stack.pop_back();
        stack.back() = apply(instruction.operation, stack.back(), right);
    }
    return stack.at(0);
}

} // namespace wpk
