// The reason of this thread's last failure, for callers that get no more than null or a number from TensorRT.
#pragma once

extern "C" __attribute__((visibility("default"))) const char* wpk_last_error() noexcept;

namespace wpk
{

void keep_error(const char* text) noexcept;

// The text of the exception that is being handled, kept as the last error.
const char* keep_exception() noexcept;

} // namespace wpk
