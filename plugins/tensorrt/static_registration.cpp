// Registers WpkKernel with TensorRT's registry when the library is loaded, for programs that only open it.
#include "plugins/tensorrt/creator.hpp"

namespace
{

// One build serves one major of TensorRT, whose registry this calls.
const nvinfer1::PluginRegistrar<wpk::KernelPluginCreator> registrar{};

} // namespace
