// The CUDA driver, which is found when it is first asked for: nothing links with it.
#pragma once

#include "plugins/core/cuda_functions.hpp"

namespace wpk
{

// The driver, loaded and initialised once: libcuda.so.1, or the library that WPK_CUDA_DRIVER names.
// Throws Error(no_driver).
const Driver& driver();

// Throws Error(driver, or out_of_memory) unless the status is success; `what` completes "the driver cannot ...".
void require(CUresult status, const char* what);

} // namespace wpk
