#include "plugins/libraries/cudnn.hpp"

#include <map>
#include <mutex>

#include "plugins/core/error.hpp"
#include "plugins/libraries/cudnn_plan.hpp"

namespace wpk
{
namespace
{

// Plans, and the frontend's own tables, are made, used and given back by one thread after the other.
std::mutex& turn()
{
    static std::mutex mutex;
    return mutex;
}

class CudnnCall final : public ReadyCall
{
public:
    CudnnCall(std::shared_ptr<const CudnnHandle> handle, const LibraryCall& call)
        : inputs_(call.inputs), plan_(std::make_unique<CudnnPlan>(std::move(handle), read_cudnn_recipe(call.recipe)))
    {
    }

    ~CudnnCall() override
    {
        const std::lock_guard lock(turn());
        plan_.reset();
    }

    std::uint64_t workspace_bytes() const noexcept override
    {
        return plan_->workspace_bytes();
    }

    void put_on(CUstream stream, const Addresses& addresses) override
    {
        std::vector<std::uint64_t> tensors;
        for (const std::uint32_t input : inputs_)
        {
            tensors.push_back(addresses.inputs.at(input));
        }
        tensors.insert(tensors.end(), addresses.outputs.begin(), addresses.outputs.end());
        const std::lock_guard lock(turn());
        plan_->put_on(reinterpret_cast<std::uint64_t>(stream), tensors, addresses.workspace);
    }

private:
    std::vector<std::uint32_t> inputs_;
    std::unique_ptr<CudnnPlan> plan_;
};

class Cudnn final : public Library
{
public:
    explicit Cudnn(std::shared_ptr<const CudnnHandle> handle) : handle_(std::move(handle)) {}

    std::unique_ptr<ReadyCall> prepare(const LibraryCall& call) override
    {
        const std::lock_guard lock(turn());
        return std::make_unique<CudnnCall>(handle_, call);
    }

private:
    std::shared_ptr<const CudnnHandle> handle_;
};

} // namespace

std::shared_ptr<Library> open_cudnn(const std::string& version)
{
    static std::map<CUcontext, std::weak_ptr<const CudnnHandle>> handles;
    const std::lock_guard lock(turn());
    const std::string found = cudnn_version();
    if (found != version)
    {
        throw Error(Code::unsupported, "it calls cuDNN " + version + ", and " + found
                                           + " is installed; fix: install the version that was measured, or optimize "
                                             "the model again");
    }
    CUcontext context = nullptr;
    require(driver().cuCtxGetCurrent(&context), "find the context");
    std::shared_ptr<const CudnnHandle> handle = handles[context].lock();
    if (handle == nullptr)
    {
        handle = make_cudnn_handle();
        handles[context] = handle;
    }
    return std::make_shared<Cudnn>(std::move(handle));
}

} // namespace wpk
