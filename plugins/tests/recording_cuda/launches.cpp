// The double's libraries, tensor maps and launches.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "plugins/core/cuda_types.hpp"
#include "plugins/tests/recording_cuda/graphs.hpp"
#include "plugins/tests/recording_cuda/machine_code.hpp"
#include "plugins/tests/recording_cuda/record.hpp"

using namespace recording;

namespace
{

void add_up(const std::vector<const float*>& inputs, float* output, int count)
{
    for (int i = 0; i < count; ++i)
    {
        float sum = 0;
        for (const float* input : inputs)
        {
            sum += input[i];
        }
        output[i] = sum;
    }
}

wpk::TensorMapDescriptor encoded(void* address, const std::string& asked)
{
    wpk::TensorMapDescriptor map{};
    map.words[0] = reinterpret_cast<std::uint64_t>(address);
    map.words[1] = std::hash<std::string>{}(asked);
    return map;
}

std::string said_of(const wpk::LaunchAttribute& attribute)
{
    const auto& value = attribute.value;
    return " attribute " + std::to_string(attribute.id)
           + (attribute.id == wpk::attribute_cluster ? listed(&value.cluster.x, 3)
                                                     : " " + std::to_string(value.programmatic_serialization));
}

} // namespace

extern "C"
{

    CUresult cuLibraryLoadData(CUlibrary* library, const void* code, int*, void**, unsigned, int*, void**, unsigned)
    {
        WPK_CALL("cuLibraryLoadData");
        const std::optional<CUlib_st> loaded = loaded_from(static_cast<const char*>(code));
        if (!loaded)
        {
            record.line("wrong: machine code with parameters of an unknown size");
            return unknown;
        }
        *library = record.keep(new CUlib_st(*loaded));
        return success;
    }

    CUresult cuLibraryUnload(CUlibrary library)
    {
        return record.give_back("cuLibraryUnload", library);
    }

    CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name)
    {
        WPK_CALL(std::string("cuLibraryGetKernel ") + name);
        const auto found = library->kernels.find(name);
        *kernel = found != library->kernels.end() ? &found->second : &library->any;
        return success;
    }

    CUresult cuKernelSetAttribute(int attribute, int value, CUkernel, CUdevice)
    {
        WPK_CALL("cuKernelSetAttribute " + std::to_string(attribute) + " " + std::to_string(value));
        return success;
    }

    CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel)
    {
        WPK_CALL("cuKernelGetFunction");
        *function = reinterpret_cast<CUfunction>(kernel);
        return success;
    }

    CUresult cuTensorMapEncodeTiled(wpk::TensorMapDescriptor* map, int type, std::uint32_t rank, void* address,
        const std::uint64_t* shape, const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,
        int interleave, int swizzle, int promotion, int fill)
    {
        const std::string asked =
            "type " + std::to_string(type) + " shape" + listed(shape, rank) + " strides" + listed(strides, rank - 1)
            + " box" + listed(box, rank) + " steps" + listed(steps, rank) + " modes " + std::to_string(interleave) + " "
            + std::to_string(swizzle) + " " + std::to_string(promotion) + " " + std::to_string(fill);
        WPK_CALL("cuTensorMapEncodeTiled " + asked);
        *map = encoded(address, asked);
        return success;
    }

    CUresult cuTensorMapEncodeIm2col(wpk::TensorMapDescriptor* map, int type, std::uint32_t rank, void* address,
        const std::uint64_t* shape, const std::uint64_t* strides, const int* lower, const int* upper,
        std::uint32_t channels, std::uint32_t pixels, const std::uint32_t* steps, int interleave, int swizzle,
        int promotion, int fill)
    {
        const std::string asked = "type " + std::to_string(type) + " shape" + listed(shape, rank) + " strides"
                                  + listed(strides, rank - 1) + " lower" + listed(lower, rank - 2) + " upper"
                                  + listed(upper, rank - 2) + " box " + std::to_string(channels) + " "
                                  + std::to_string(pixels) + " steps" + listed(steps, rank) + " modes "
                                  + std::to_string(interleave) + " " + std::to_string(swizzle) + " "
                                  + std::to_string(promotion) + " " + std::to_string(fill);
        WPK_CALL("cuTensorMapEncodeIm2col " + asked);
        *map = encoded(address, asked);
        return success;
    }

    CUresult cuLaunchKernelEx(
        const wpk::LaunchConfiguration* configuration, CUfunction function, void** parameters, void**)
    {
        const auto* kernel = reinterpret_cast<CUkern_st*>(function);
        std::vector<const float*> inputs;
        int count = 0;
        std::string said;
        for (const char kind : kernel->parameters)
        {
            const void* parameter = *parameters++;
            if (kind == 'i')
            {
                count = *static_cast<const int*>(parameter);
                said += " i" + std::to_string(count);
                continue;
            }
            const auto address = *static_cast<const std::uint64_t*>(parameter);
            said += std::string(" ") + kind + std::to_string(address);
            if (kind == 'p' || kind == 'm')
            {
                inputs.push_back(reinterpret_cast<const float*>(address));
            }
        }
        for (unsigned i = 0; i < configuration->attribute_count; ++i)
        {
            said += said_of(configuration->attributes[i]);
        }
        WPK_CALL("cuLaunchKernelEx" + listed(configuration->grid, 3) + " block" + listed(configuration->block, 3)
                 + " shared " + std::to_string(configuration->shared_bytes) + said);
        if (inputs.empty())
        {
            put(configuration->stream, "launch", [] {});
            return success;
        }
        auto* output = const_cast<float*>(inputs.back());
        inputs.pop_back();
        put(configuration->stream, "launch", [=] { add_up(inputs, output, count); });
        return success;
    }

} // extern "C"
