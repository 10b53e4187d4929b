// The libraries that compute operators besides kernels, by name.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "plugins/core/library.hpp"

namespace wpk
{

// Libraries that were opened on the GPU whose context is current. What is made ready of them may be used by one thread
// after the other: cuDNN's handles cannot go from a stream that one thread captures to the stream of another.
class Libraries
{
public:
    // Make an implementation ready; its library is opened at the first call. Throws Error(unsupported) where the
    // library is not built in, not installed, of another version, or refuses; Error(damaged) where the recipe does not
    // add up, or asks for more scratch memory than was measured.
    std::unique_ptr<ReadyCall> prepare(const LibraryCall& call);

private:
    std::map<std::string, std::unique_ptr<Library>> open_; // by version
};

} // namespace wpk
