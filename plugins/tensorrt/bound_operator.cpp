#include "plugins/tensorrt/bound_operator.hpp"

#include <utility>

#include "plugins/libraries/libraries.hpp"

namespace wpk
{
namespace
{

// An address as tensor maps take it, until TensorRT says where tensors lie.
constexpr std::uint64_t nowhere = 256;

} // namespace

BoundOperator::BoundOperator(const KernelOperator& kernels, std::size_t variant, Dims dims)
    : operator_(kernels), variant_(variant), dims_(std::move(dims))
{
    const OperatorSpec& spec = operator_.spec();
    const Work& work = spec.variants[variant].work;
    const std::vector<Launch>& launches = launches_of(work);
    if (const auto* call = std::get_if<LibraryCall>(&work))
    {
        call_ = Libraries().prepare(*call);
    }
    operator_.kernels();
    addresses_.inputs.assign(spec.inputs.size(), nowhere);
    addresses_.outputs.assign(spec.outputs.size(), nowhere);
    launches_.reserve(launches.size());
    for (const Launch& launch : launches)
    {
        launches_.emplace_back(launch, operator_.kernels().at(launch.kernel), addresses_, dims_);
    }
    counters_ = Counters(counter_bytes(work, dims_));
    addresses_.counters = counters_.address();
}

BoundOperator::Counters::Counters(std::uint64_t bytes)
{
    if (bytes == 0)
    {
        return;
    }
    require(driver().cuMemAlloc(&address_, bytes), "allocate counters");
    const CUresult cleared = driver().cuMemsetD8Async(address_, 0, bytes, nullptr);
    const CUresult status = cleared != 0 ? cleared : driver().cuStreamSynchronize(nullptr);
    if (status != 0)
    {
        driver().cuMemFree(address_);
        require(status, "clear counters");
    }
}

BoundOperator::Counters& BoundOperator::Counters::operator=(Counters&& other) noexcept
{
    std::swap(address_, other.address_);
    return *this;
}

BoundOperator::Counters::~Counters()
{
    if (address_ != 0)
    {
        driver().cuMemFree(address_);
    }
}

void BoundOperator::enqueue(const void* const* inputs, void* const* outputs, void* workspace, CUstream stream)
{
    for (std::size_t i = 0; i < addresses_.inputs.size(); ++i)
    {
        addresses_.inputs[i] = reinterpret_cast<std::uint64_t>(inputs[i]);
    }
    for (std::size_t i = 0; i < addresses_.outputs.size(); ++i)
    {
        addresses_.outputs[i] = reinterpret_cast<std::uint64_t>(outputs[i]);
    }
    addresses_.workspace = reinterpret_cast<std::uint64_t>(workspace);
    if (call_ != nullptr)
    {
        call_->put_on(stream, addresses_);
    }
    for (BoundLaunch& launch : launches_)
    {
        launch.move_to(addresses_);
        require(launch.enqueue(stream), "launch a kernel");
    }
}

} // namespace wpk
