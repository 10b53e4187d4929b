#include "plugins/tensorrt/kernel_operator.hpp"

#include <algorithm>

#include "plugins/core/error.hpp"
#include "plugins/core/image.hpp"
#include "plugins/libraries/libraries.hpp"

namespace wpk
{
namespace
{

bool is_digest(const std::string& text) noexcept
{
    constexpr std::size_t digits = 64;
    return text.size() == digits && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

} // namespace

KernelOperator::KernelOperator(std::vector<std::byte> bytes, std::string id)
    : bytes_(std::move(bytes)), id_(std::move(id)), spec_(read_operator(bytes_.data(), bytes_.size()))
{
    if (!is_digest(id_))
    {
        throw Error(Code::damaged, "the plugin's id is '" + id_.substr(0, 64)
                                       + "', expected are 64 hexadecimal digits; fix: write the model again with wpk");
    }
    std::for_each(spec_.kernels.begin(), spec_.kernels.end(), require_whole);
}

const LoadedKernels& KernelOperator::kernels() const
{
    const std::lock_guard lock(loading_);
    if (kernels_ == nullptr)
    {
        std::vector<const Launch*> launches;
        for (const Variant& variant : spec_.variants)
        {
            for (const Launch& launch : launches_of(variant.work))
            {
                launches.push_back(&launch);
            }
        }
        kernels_ = std::make_unique<const LoadedKernels>(spec_.kernels, launches);
    }
    return *kernels_;
}

bool KernelOperator::can_execute(std::size_t variant) const
{
    const auto* call = std::get_if<LibraryCall>(&spec_.variants[variant].work);
    if (call == nullptr)
    {
        return true;
    }
    const std::lock_guard lock(loading_);
    const auto known = executable_.find(variant);
    if (known != executable_.end())
    {
        return known->second;
    }
    bool takes_it = true;
    try
    {
        Libraries().prepare(*call);
    }
    catch (const Error&)
    {
        takes_it = false; // kernels of other variants, or TensorRT's own layers, compute the operator
    }
    executable_.emplace(variant, takes_it);
    return takes_it;
}

} // namespace wpk
