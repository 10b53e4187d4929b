// An operator as all copies of a plugin share it: its spec, as bytes and read, and its machine code once it is loaded.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "plugins/core/launcher.hpp"

namespace wpk
{

class KernelOperator
{
public:
    // Throws Error(damaged): the spec does not add up, or an image is missing or not whole.
    KernelOperator(std::vector<std::byte> bytes, std::string id);

    const std::vector<std::byte>& bytes() const noexcept
    {
        return bytes_;
    }

    // What Python made of the spec's bytes: a SHA-256 in hexadecimal digits.
    const std::string& id() const noexcept
    {
        return id_;
    }

    const OperatorSpec& spec() const noexcept
    {
        return spec_;
    }

    // The kernels, loaded at the first call, in the context that is current then. Throws Error(driver, no_driver).
    const LoadedKernels& kernels() const;

    // Whether a variant can be executed here: where a library computes it, the library is here and takes it. Asked once
    // of each variant, in the context that is current then.
    bool can_execute(std::size_t variant) const;

private:
    std::vector<std::byte> bytes_;
    std::string id_;
    OperatorSpec spec_;
    mutable std::mutex loading_;
    mutable std::unique_ptr<const LoadedKernels> kernels_;
    mutable std::map<std::size_t, bool> executable_; // variants of libraries that were asked for
};

} // namespace wpk
