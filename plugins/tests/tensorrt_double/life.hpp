// The life of a plugin in TensorRT: built, cloned, configured, timed, serialized, created again, attached, executed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <NvInferRuntime.h>

#include "plugins/tensorrt/tensors.hpp"
#include "plugins/tests/tensorrt_double/memory.hpp"

namespace wpk_test
{

class Life
{
public:
    // Of the operator that a spec describes, whose bytes and id are kept by whoever calls.
    Life(const std::vector<char>& bytes, const std::string& id);

    // The sums of the outputs, of each tactic and then of the runtime. Throws Refused.
    std::vector<std::uint64_t> live();

private:
    using AllMemory = std::vector<std::unique_ptr<Memory>>;

    std::int32_t inputs() const;
    std::int32_t outputs() const;
    std::int32_t build(nvinfer1::IPluginV3& plugin);
    void check_shapes(nvinfer1::IPluginV3OneBuild& build);
    void run(nvinfer1::IPluginV3OneRuntime& runtime, std::int32_t tactic, const AllMemory& memory);
    void execute(nvinfer1::IPluginV3& loaded, std::int32_t tactic);

    const std::string& id_;
    const std::vector<char>& bytes_;
    wpk::OperatorSpec spec_;
    wpk::Dims dims_;
    std::vector<nvinfer1::DynamicPluginTensorDesc> tensors_;
    AllMemory memory_, other_memory_;
    std::uint64_t workspace_ = 0;
    std::vector<std::uint64_t> sums_;
};

} // namespace wpk_test
