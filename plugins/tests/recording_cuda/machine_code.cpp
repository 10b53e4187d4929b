#include "plugins/tests/recording_cuda/machine_code.hpp"

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <elf.h>

#include "plugins/core/cuda_types.hpp"

namespace recording
{

namespace
{

constexpr std::size_t text_begin = 128; // an ELF header, and one section header

// Kinds of a kernel's parameters, as its section .nv.info.NAME says: of 4 bytes, of 8, and tensor maps of 128; none for
// other sizes.
std::optional<std::string> parameters_of(const char* info, std::size_t size)
{
    constexpr unsigned char sized = 4, parameter_info = 0x17;
    constexpr unsigned size_shift = 18;
    std::map<std::uint16_t, char> kinds;
    for (std::size_t at = 0; at + 4 <= size;)
    {
        std::uint16_t length = 0;
        std::memcpy(&length, info + at + 2, sizeof length);
        if (info[at] == sized && info[at + 1] == parameter_info)
        {
            std::uint16_t ordinal = 0;
            std::uint32_t packed = 0;
            std::memcpy(&ordinal, info + at + 8, sizeof ordinal);
            std::memcpy(&packed, info + at + 12, sizeof packed);
            const std::uint32_t bytes = packed >> size_shift;
            if (bytes != 4 && bytes != 8 && bytes != sizeof(wpk::TensorMapDescriptor))
            {
                return std::nullopt;
            }
            kinds[ordinal] = bytes == 4 ? 'i' : 'a';
        }
        at += info[at] == sized ? std::size_t{4} + length : 4;
    }
    std::string parameters;
    for (const auto& [ordinal, kind] : kinds)
    {
        parameters += kind;
    }
    return parameters;
}

} // namespace

std::optional<CUlib_st> loaded_from(const char* code)
{
    const std::string prefix = ".nv.info.";
    CUlib_st library;
    Elf64_Ehdr header;
    std::memcpy(&header, code, sizeof header);
    if (header.e_shnum <= 1)
    {
        library.any = {code + text_begin};
        return library;
    }
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), code + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
    for (const Elf64_Shdr& section : sections)
    {
        const std::string name = code + sections.at(header.e_shstrndx).sh_offset + section.sh_name;
        if (name.rfind(prefix, 0) == 0)
        {
            const auto parameters = parameters_of(code + section.sh_offset, section.sh_size);
            if (!parameters)
            {
                return std::nullopt;
            }
            library.kernels[name.substr(prefix.size())] = {*parameters};
        }
    }
    return library;
}

} // namespace recording
