// cuDNN, where wpk is built with its headers and those of its frontend.
#pragma once

#include <memory>
#include <string>

#include "plugins/core/library.hpp"

namespace wpk
{

// cuDNN for the context that is current, with a handle of its own, which what is made ready of it keeps. Throws
// Error(unsupported) where it is not built in, not installed or of another version.
std::unique_ptr<Library> open_cudnn(const std::string& version);

} // namespace wpk
