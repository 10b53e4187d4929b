// What computes an operator besides kernels: an implementation of a library, on the GPU whose context is current.
#pragma once

#include <cstdint>
#include <memory>

#include "plugins/core/launcher.hpp"

namespace wpk
{

// An implementation that was made ready.
class ReadyCall
{
public:
    ReadyCall() = default;
    ReadyCall(const ReadyCall&) = delete;
    ReadyCall& operator=(const ReadyCall&) = delete;
    virtual ~ReadyCall() = default;

    // Scratch memory that it asks for.
    virtual std::uint64_t workspace_bytes() const noexcept = 0;

    // Put it on a stream; may be captured. Throws Error(unsupported, invalid_argument, damaged).
    virtual void put_on(CUstream stream, const Addresses& addresses) = 0;
};

class Library
{
public:
    Library() = default;
    Library(const Library&) = delete;
    Library& operator=(const Library&) = delete;
    virtual ~Library() = default;

    // Make an implementation ready, which may compile it and take a second. Throws Error(damaged, unsupported).
    virtual std::unique_ptr<ReadyCall> prepare(const LibraryCall& call) = 0;
};

} // namespace wpk
