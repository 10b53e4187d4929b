#include "plugins/libraries/cudnn.hpp"

#include "plugins/core/error.hpp"
#include "plugins/libraries/cudnn_plan.hpp"

namespace wpk
{
namespace
{

class CudnnCall final : public ReadyCall
{
public:
    CudnnCall(std::shared_ptr<const CudnnHandle> handle, const LibraryCall& call)
        : inputs_(call.inputs), plan_(std::move(handle), read_cudnn_recipe(call.recipe))
    {
    }

    std::uint64_t workspace_bytes() const noexcept override
    {
        return plan_.workspace_bytes();
    }

    void put_on(CUstream stream, const Addresses& addresses) override
    {
        std::vector<std::uint64_t> tensors;
        for (const std::uint32_t input : inputs_)
        {
            tensors.push_back(addresses.inputs.at(input));
        }
        tensors.insert(tensors.end(), addresses.outputs.begin(), addresses.outputs.end());
        plan_.put_on(reinterpret_cast<std::uint64_t>(stream), tensors, addresses.workspace);
    }

private:
    std::vector<std::uint32_t> inputs_;
    CudnnPlan plan_;
};

class Cudnn final : public Library
{
public:
    std::unique_ptr<ReadyCall> prepare(const LibraryCall& call) override
    {
        return std::make_unique<CudnnCall>(handle_, call);
    }

private:
    std::shared_ptr<const CudnnHandle> handle_ = make_cudnn_handle();
};

} // namespace

std::unique_ptr<Library> open_cudnn(const std::string& version)
{
    const std::string found = cudnn_version();
    if (found != version)
    {
        throw Error(Code::unsupported, "it calls cuDNN " + version + ", and " + found
                                           + " is installed; fix: install the version that was measured, or optimize "
                                             "the model again");
    }
    return std::make_unique<Cudnn>();
}

} // namespace wpk
