// cuDNN, where wpk is built with its headers and those of its frontend.
#pragma once

#include <memory>
#include <string>

#include "plugins/core/library.hpp"

namespace wpk
{

// cuDNN for the current context, opened where it is not open there; candidates keep it open. Throws Error(unsupported)
// where it is not built in, not installed or of another version.
std::shared_ptr<Library> open_cudnn(const std::string& version);

} // namespace wpk
