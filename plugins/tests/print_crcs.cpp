// Reads pieces from the standard input, each a u32 of its bytes and the bytes, and answers each with the CRC-32 of all
// pieces so far.
#include <cstdio>
#include <vector>

#include "plugins/core/crc32.hpp"

int main()
{
    wpk::Crc32 crc;
    std::uint32_t size = 0;
    while (std::fread(&size, sizeof size, 1, stdin) == 1)
    {
        std::vector<std::byte> data(size);
        if (std::fread(data.data(), 1, size, stdin) != size)
        {
            return 1;
        }
        crc.add(data.data(), size);
        std::printf("%u\n", crc.value());
    }
    return 0;
}
