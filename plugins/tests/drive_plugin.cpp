// Plays TensorRT's part through its public virtual interfaces, and takes the plugin through its whole life: built,
// cloned, configured in every format, timed with every tactic, serialized, created again, attached, executed.
//
//   drive_plugin SPEC ID [--fail-allocations]
//
// The operator's inputs and outputs are fp32 or 16-bit tensors; it is executed on the driver that WPK_CUDA_DRIVER
// names, or on the GPU. The sum of all bytes of each output is printed. With --fail-allocations the life is repeated
// with an allocator that fails at its first, second, … call: every life but the last must end with a refusal, none in a
// crash.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "plugins/core/cuda_driver.hpp"
#include "plugins/core/error.hpp"
#include "plugins/tests/allocations.hpp"
#include "plugins/tests/tensorrt_double/expectations.hpp"
#include "plugins/tests/tensorrt_double/life.hpp"

namespace
{

using namespace wpk_test;

// Whether a life with so many allocations ends well.
bool lives(Life& life, long allocations)
{
    bool ended_well = true;
    allocations_left = allocations;
    try
    {
        life.live();
    }
    catch (const Refused&)
    {
        ended_well = false;
    }
    catch (const std::bad_alloc&)
    {
        ended_well = false; // of the driver's own
    }
    allocations_left = -1;
    return ended_well;
}

void drive(int count, char** words)
{
    std::puts("This driver is wpk's own: it plays TensorRT's part, and is no proof of working in TensorRT.");
    require(count >= 3, "a spec and its id are given");
    std::ifstream stream(words[1], std::ios::binary);
    const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    const std::string id = words[2];
    CUcontext context = nullptr;
    wpk::require(wpk::driver().cuDevicePrimaryCtxRetain(&context, 0), "take the GPU");
    wpk::require(wpk::driver().cuCtxPushCurrent(context), "take the GPU");
    {
        Life life(bytes, id);
        try
        {
            for (const std::uint64_t sum : life.live())
            {
                std::printf("%llu\n", static_cast<unsigned long long>(sum));
            }
        }
        catch (const Refused&)
        {
            require(false, "the plugin lives");
        }
        if (count > 3)
        {
            long failed = 0;
            while (!lives(life, failed))
            {
                ++failed;
            }
            std::printf("refused at each of %ld allocations\n", failed);
        }
    }
    wpk::driver().cuCtxPopCurrent(&context);
    wpk::driver().cuDevicePrimaryCtxRelease(0);
}

} // namespace

int main(int count, char** words)
{
    try
    {
        drive(count, words);
        return 0;
    }
    catch (const wpk::Error& error)
    {
        require(false, error.what());
    }
}
