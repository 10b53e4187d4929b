// Stands for cuDNN where wpk is built without it.
#include "plugins/core/error.hpp"
#include "plugins/libraries/cudnn.hpp"

namespace wpk
{

std::unique_ptr<Library> open_cudnn(const std::string& version)
{
    throw Error(Code::unsupported,
        "it calls cuDNN " + version
            + ", and this wpk is built without cuDNN; fix: build it with WPK_CUDNN_INCLUDE and "
              "WPK_CUDNN_FRONTEND_INCLUDE, or write the plan without libraries: wpk optimize --search static");
}

} // namespace wpk
