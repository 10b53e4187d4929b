#include "plugins/core/spec_parts.hpp"

#include <cstring>

#include "plugins/core/crc32.hpp"
#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

constexpr char magic[] = {'W', 'P', 'K', 'S'};
constexpr std::uint16_t version = 3;

} // namespace

std::uint32_t bytes_of(ElementType type) noexcept
{
    switch (type)
    {
    case ElementType::int64:
    case ElementType::uint64:
    case ElementType::fp64:
        return 8;
    case ElementType::fp32:
    case ElementType::int32:
    case ElementType::uint32:
        return 4;
    case ElementType::fp16:
    case ElementType::bf16:
    case ElementType::int16:
    case ElementType::uint16:
        return 2;
    case ElementType::int8:
    case ElementType::uint8:
    case ElementType::boolean:
    case ElementType::fp8_e4m3:
    case ElementType::fp8_e5m2:
        break;
    }
    return 1;
}

ByteReader body_of(const std::byte* data, std::size_t size, SpecKind kind)
{
    ByteReader in(data, size);
    char seen[4] = {};
    for (char& letter : seen)
    {
        letter = static_cast<char>(in.u8("its header"));
    }
    if (std::memcmp(seen, magic, sizeof magic) != 0)
    {
        spec_is_damaged("does not begin with WPKS");
    }
    if (const auto number = in.u16("its version"); number != version)
    {
        spec_is_damaged("has version " + std::to_string(number) + ", read is " + std::to_string(version));
    }
    if (const auto number = in.u16("its kind"); number != static_cast<std::uint16_t>(kind))
    {
        spec_is_damaged("is of kind " + std::to_string(number) + ", asked for is "
                        + std::to_string(static_cast<std::uint16_t>(kind)));
    }
    const std::uint64_t bytes = in.u64("its length");
    const std::uint32_t checksum = in.u32("its checksum");
    if (bytes != in.left())
    {
        spec_is_damaged(
            "says that its body has " + std::to_string(bytes) + " bytes, it has " + std::to_string(in.left()));
    }
    Crc32 crc;
    crc.add(data + (size - in.left()), in.left());
    if (crc.value() != checksum)
    {
        spec_is_damaged("has a body that is not the one that its checksum was made of");
    }
    return in;
}

void require_end(const ByteReader& in)
{
    if (in.left() != 0)
    {
        spec_is_damaged("has " + std::to_string(in.left()) + " bytes behind its last field");
    }
}

ElementType read_element_type(ByteReader& in)
{
    const std::uint8_t number = in.u8("an element type");
    if (number < static_cast<std::uint8_t>(ElementType::fp32)
        || number > static_cast<std::uint8_t>(ElementType::fp8_e5m2))
    {
        spec_is_damaged("has an element type " + std::to_string(number) + ", there are 1 to 15");
    }
    return static_cast<ElementType>(number);
}

Expression read_expression(ByteReader& in, std::size_t dimensions)
{
    const auto read = [&]
    {
        Instruction instruction{static_cast<Operation>(in.u8("an operation")), 0};
        if (instruction.operation <= Operation::dimension)
        {
            instruction.value = in.i64("an operand");
        }
        return instruction;
    };
    Expression expression = in.sequence("instructions", 1, read, most_instructions);
    check(expression, dimensions);
    return expression;
}

std::vector<Expression> read_shape(ByteReader& in, std::size_t dimensions)
{
    return in.sequence("extents", least_expression, [&] { return read_expression(in, dimensions); });
}

Kernel read_kernel(ByteReader& in)
{
    Kernel kernel;
    kernel.digest = in.text("a kernel's digest");
    kernel.entry = in.text("a kernel's name");
    kernel.arch = in.text("a kernel's architecture");
    kernel.image = in.bytes("a kernel's image");
    return kernel;
}

} // namespace wpk
