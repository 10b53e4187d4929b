// Memory of the GPU, or of its double.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/error.hpp"
#include "plugins/tests/allocations.hpp"

namespace wpk_test
{

// Filled with numbers that are small in fp32 and in 16 bits.
class Memory
{
public:
    explicit Memory(std::uint64_t bytes) : bytes_(bytes + 1)
    {
        const Undisturbed none;
        wpk::require(wpk::driver().cuMemAlloc(&address_, bytes_), "allocate");
        std::vector<std::uint8_t> data(bytes_);
        for (std::size_t i = 0; i < data.size(); ++i)
        {
            data[i] = i % 4 == 3 || i % 2 == 1 ? 0x3C : static_cast<std::uint8_t>(i % 7);
        }
        wpk::require(wpk::driver().cuMemcpyHtoD(address_, data.data(), bytes_), "copy");
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory()
    {
        wpk::driver().cuMemFree(address_);
    }
    void* get() const
    {
        return reinterpret_cast<void*>(address_);
    }
    std::uint64_t sum() const
    {
        const Undisturbed none;
        std::vector<std::uint8_t> data(bytes_);
        wpk::require(wpk::driver().cuMemcpyDtoH(data.data(), address_, bytes_), "copy");
        std::uint64_t sum = 0, place = 1;
        for (const std::uint8_t byte : data)
        {
            sum += byte * (place++ % 251);
        }
        return sum;
    }

private:
    CUdeviceptr address_ = 0;
    std::uint64_t bytes_;
};

} // namespace wpk_test
