// Machine code as the driver is given it, which is not told how long it is.
#pragma once

#include "plugins/core/spec.hpp"

namespace wpk
{

// Throws Error(damaged) unless the image is an ELF file of the CUDA architecture whose headers and sections all lie
// within it.
void require_whole(const Kernel& kernel);

} // namespace wpk
