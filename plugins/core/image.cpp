#include "plugins/core/image.hpp"

#include <cstring>

#include <elf.h>

#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

constexpr Elf64_Half cuda_machine = 190;

[[noreturn]] void refuse(const Kernel& kernel, const std::string& what)
{
    throw Error(
        Code::damaged, "the image of kernel " + kernel.entry + " " + what
                           + "; fix: write the plan or the plugin's spec again with wpk, or copy the file again");
}

bool lies_within(std::uint64_t begin, std::uint64_t size, std::size_t all) noexcept
{
    return begin <= all && size <= all - begin;
}

} // namespace

void require_whole(const Kernel& kernel)
{
    const std::vector<std::byte>& image = kernel.image;
    Elf64_Ehdr header;
    if (image.size() < sizeof header)
    {
        refuse(kernel,
            "has " + std::to_string(image.size()) + " bytes, an ELF header alone has " + std::to_string(sizeof header));
    }
    std::memcpy(&header, image.data(), sizeof header);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64
        || header.e_machine != cuda_machine)
    {
        refuse(kernel, "is no ELF file of the CUDA architecture");
    }
    const std::uint64_t sections = std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
    const std::uint64_t segments = std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
    if (header.e_shnum == 0 || header.e_shentsize != sizeof(Elf64_Shdr)
        || (header.e_phnum != 0 && header.e_phentsize != sizeof(Elf64_Phdr))
        || !lies_within(header.e_shoff, sections, image.size()) || !lies_within(header.e_phoff, segments, image.size()))
    {
        refuse(kernel, "has headers that do not lie within its " + std::to_string(image.size()) + " bytes");
    }
    for (Elf64_Half number = 0; number < header.e_shnum; ++number)
    {
        Elf64_Shdr section;
        std::memcpy(&section, image.data() + header.e_shoff + number * sizeof section, sizeof section);
        if (section.sh_type != SHT_NOBITS && !lies_within(section.sh_offset, section.sh_size, image.size()))
        {
            refuse(kernel,
                "has section " + std::to_string(number) + " beyond its " + std::to_string(image.size()) + " bytes");
        }
    }
}

} // namespace wpk
