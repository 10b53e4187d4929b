#include "plugins/libraries/libraries.hpp"

#include "plugins/core/error.hpp"
#include "plugins/libraries/cudnn.hpp"

namespace wpk
{

std::unique_ptr<ReadyCall> Libraries::prepare(const LibraryCall& call)
{
    if (call.library != "cuDNN")
    {
        throw Error(Code::unsupported, "it calls " + call.library + " " + call.version
                                           + ", and of libraries only cuDNN is called here; fix: execute it with "
                                             "Python: wpk run");
    }
    std::unique_ptr<Library>& library = open_[call.version];
    if (library == nullptr)
    {
        library = open_cudnn(call.version);
    }
    std::unique_ptr<ReadyCall> ready = library->prepare(call);
    if (ready->workspace_bytes() > call.workspace_bytes)
    {
        throw Error(Code::damaged, "its implementation of " + call.library + " asks for "
                                       + std::to_string(ready->workspace_bytes()) + " bytes of scratch memory, "
                                       + std::to_string(call.workspace_bytes)
                                       + " were measured; fix: optimize the model again on this GPU");
    }
    return ready;
}

} // namespace wpk
