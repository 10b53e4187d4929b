// What the double reads of machine code.
#pragma once

#include <optional>

#include "plugins/tests/recording_cuda/objects.hpp"

namespace recording
{

// Kernels and their parameters; none where a parameter cannot be told.
std::optional<CUlib_st> loaded_from(const char* code);

} // namespace recording
