// The libraries that compute operators besides kernels, by name.
#pragma once

#include <memory>

#include "plugins/core/library.hpp"

namespace wpk
{

// Make an implementation ready on the GPU whose context is current; the library is opened where it is not open there.
// Throws Error(unsupported) where it is not built in, not installed, of another version, or refuses; Error(damaged)
// where its recipe does not add up, or it asks for more scratch memory than was measured.
std::unique_ptr<ReadyCall> prepare_call(const LibraryCall& call);

} // namespace wpk
