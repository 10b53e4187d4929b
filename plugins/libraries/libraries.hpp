// The libraries that compute operators besides kernels, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "plugins/core/library.hpp"
#include "plugins/libraries/cudnn.hpp"

namespace wpk
{

// Where the elements of a tensor lie, from its first one on.
struct TensorReach
{
    std::int64_t element_bytes;
    std::vector<std::int64_t> dims, strides; // elements; at least 1
};

// The tensors that a call reads, in the order of its inputs, and then the one that it writes. Throws
// Error(unsupported) for a library that is none of those called here, Error(damaged) where the recipe does not add up.
std::vector<TensorReach> tensors_of(const LibraryCall& call);

// Libraries that were opened on the GPU whose context is current. What is made ready of them may be used by one thread
// after the other: cuDNN's handles cannot go from a stream that one thread captures to the stream of another.
class Libraries
{
public:
    using Open = std::function<std::unique_ptr<Library>(const std::string& version)>;

    explicit Libraries(Open open = open_cudnn) : open_(std::move(open)) {}

    // Make an implementation ready, once: calls that are equal share it, as in Python
    // (wpk/libraries/cuda_libraries.py). Each copy would be compiled again, and would be other machine code to the GPU,
    // which its caches do not hold yet. The library is opened at the first call. Throws Error(unsupported) where the
    // library is not built in, not installed, of another version, or refuses; Error(damaged) where the recipe does not
    // add up, or asks for more scratch memory than was measured.
    std::shared_ptr<ReadyCall> prepare(const LibraryCall& call);

private:
    using Key = std::tuple<std::string, std::uint64_t, std::vector<std::uint32_t>, std::vector<std::byte>>;

    Open open_;
    std::map<std::string, std::unique_ptr<Library>> libraries_; // by version
    std::map<Key, std::shared_ptr<ReadyCall>> ready_;
};

} // namespace wpk
