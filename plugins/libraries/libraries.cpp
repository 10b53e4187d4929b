#include "plugins/libraries/libraries.hpp"

#include <algorithm>
#include <iterator>

#include "plugins/core/error.hpp"
#include "plugins/libraries/cudnn_recipe.hpp"

namespace wpk
{
namespace
{

void require_known(const LibraryCall& call)
{
    if (call.library != "cuDNN")
    {
        throw Error(Code::unsupported, "it calls " + call.library + " " + call.version
                                           + ", and of libraries only cuDNN is called here; fix: execute it with "
                                             "Python: wpk run");
    }
}

TensorReach reach_of(const CudnnTensor& tensor)
{
    return {bytes_of(tensor.type), tensor.dims, tensor.strides};
}

} // namespace

std::vector<TensorReach> tensors_of(const LibraryCall& call)
{
    require_known(call);
    const CudnnRecipe recipe = read_cudnn_recipe(call.recipe);
    std::vector<TensorReach> tensors;
    std::transform(recipe.inputs.begin(), recipe.inputs.end(), std::back_inserter(tensors), reach_of);
    tensors.push_back(reach_of(recipe.output));
    return tensors;
}

std::shared_ptr<ReadyCall> Libraries::prepare(const LibraryCall& call)
{
    require_known(call);
    const Key key(call.version, call.workspace_bytes, call.inputs, call.recipe);
    if (const auto known = ready_.find(key); known != ready_.end())
    {
        return known->second;
    }
    std::unique_ptr<Library>& library = libraries_[call.version];
    if (library == nullptr)
    {
        library = open_(call.version);
    }
    std::shared_ptr<ReadyCall> ready = library->prepare(call);
    if (ready->workspace_bytes() > call.workspace_bytes)
    {
        throw Error(Code::damaged, "its implementation of " + call.library + " asks for "
                                       + std::to_string(ready->workspace_bytes()) + " bytes of scratch memory, "
                                       + std::to_string(call.workspace_bytes)
                                       + " were measured; fix: optimize the model again on this GPU");
    }
    ready_.emplace(key, ready);
    return ready;
}

} // namespace wpk
