#include "plugins/libraries/cudnn_plan.hpp"

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include <dlfcn.h>

#include "plugins/core/error.hpp"
#include "plugins/libraries/cudnn_graph.hpp"

namespace cudnn_frontend
{

void* cudnn_dlhandle = nullptr; // the frontend finds all functions of cuDNN in it

} // namespace cudnn_frontend

namespace wpk
{
namespace
{

constexpr const char* library_variable = "WPK_CUDNN";
constexpr std::uint64_t alignment = 16;

[[noreturn]] void cannot(const std::string& what, const std::string& why)
{
    throw Error(
        Code::unsupported, "cuDNN cannot " + what + ": " + why.substr(0, why.find('\n'))
                               + "; fix: optimize the model again with the cuDNN and the GPU that are used here");
}

void require_good(frontend::error_t status, const std::string& what)
{
    if (status.is_bad())
    {
        cannot(what, status.get_message());
    }
}

void require_success(cudnnStatus_t status, const std::string& what)
{
    if (status != CUDNN_STATUS_SUCCESS)
    {
        cannot(what, frontend::detail::get_error_string(status));
    }
}

// Never closed: its threads and tables outlive all handles.
void open_library()
{
    static std::mutex opening;
    const std::lock_guard lock(opening);
    if (frontend::cudnn_dlhandle != nullptr)
    {
        return;
    }
    const char* named = std::getenv(library_variable);
    const char* library = named != nullptr ? named : "libcudnn.so.9";
    frontend::cudnn_dlhandle = dlopen(library, RTLD_NOW | RTLD_GLOBAL);
    if (frontend::cudnn_dlhandle == nullptr)
    {
        const char* why = dlerror();
        throw Error(Code::unsupported, std::string("cuDNN is not found: ") + (why != nullptr ? why : library)
                                           + "; fix: put its folder in LD_LIBRARY_PATH, or name the file in "
                                           + library_variable);
    }
}

void* place(std::uint64_t address)
{
    if (address % alignment != 0)
    {
        throw Error(Code::invalid_argument, "cuDNN is given memory at address " + std::to_string(address)
                                                + ", multiples of " + std::to_string(alignment)
                                                + " are allowed; fix: align the memory that is given");
    }
    return reinterpret_cast<void*>(address);
}

} // namespace

class CudnnHandle
{
public:
    CudnnHandle()
    {
        require_success(frontend::detail::create_handle(&handle_), "start");
    }

    CudnnHandle(const CudnnHandle&) = delete;
    CudnnHandle& operator=(const CudnnHandle&) = delete;

    ~CudnnHandle()
    {
        frontend::detail::destroy_handle(handle_);
    }

    cudnnHandle_t get() const noexcept
    {
        return handle_;
    }

private:
    cudnnHandle_t handle_ = nullptr;
};

std::string cudnn_version()
{
    open_library();
    const std::size_t number = frontend::detail::get_backend_version();
    return std::to_string(number / 10000) + "." + std::to_string(number / 100 % 100) + "."
           + std::to_string(number % 100);
}

std::shared_ptr<const CudnnHandle> make_cudnn_handle()
{
    return std::make_shared<const CudnnHandle>();
}

struct CudnnPlan::State
{
    std::shared_ptr<const CudnnHandle> handle; // given back after the graph
    std::shared_ptr<frontend::graph::Graph> graph;
    std::size_t tensors = 0;
    std::int64_t workspace = 0;
};

CudnnPlan::CudnnPlan(std::shared_ptr<const CudnnHandle> handle, const CudnnRecipe& recipe)
    : state_(std::make_unique<State>())
{
    state_->handle = std::move(handle);
    state_->graph = build_graph(recipe);
    state_->tensors = recipe.inputs.size() + 1;
    frontend::graph::Graph& graph = *state_->graph;
    std::unordered_map<frontend::KnobType_t, std::int64_t> knobs;
    for (const auto& [name, value] : recipe.knobs)
    {
        knobs.emplace(knob_of(name), value);
    }
    require_good(graph.validate(), "take a graph");
    require_good(graph.build_operation_graph(state_->handle->get()), "take a graph");
    require_good(graph.create_execution_plan(recipe.engine, knobs), "make a plan");
    // Engines that are not asked: sums are fp32, and strict fp32 is never tf32.
    std::vector<frontend::NumericalNote_t> shortcuts{frontend::NumericalNote_t::REDUCED_PRECISION_REDUCTION};
    if (recipe.is_strict)
    {
        shortcuts.push_back(frontend::NumericalNote_t::TENSOR_CORE);
        shortcuts.push_back(frontend::NumericalNote_t::DOWN_CONVERT_INPUTS);
    }
    graph.deselect_numeric_notes(shortcuts);
    require_good(graph.build_plan_at_index(0), "make a plan");
    require_good(graph.get_workspace_size_plan_at_index(0, state_->workspace), "size a plan");
}

CudnnPlan::~CudnnPlan() = default;

std::uint64_t CudnnPlan::workspace_bytes() const noexcept
{
    return static_cast<std::uint64_t>(state_->workspace);
}

void CudnnPlan::put_on(std::uint64_t stream, const std::vector<std::uint64_t>& tensors, std::uint64_t workspace)
{
    if (tensors.size() != state_->tensors)
    {
        throw Error(Code::damaged, "a recipe of cuDNN has " + std::to_string(state_->tensors)
                                       + " tensors, its operator " + std::to_string(tensors.size())
                                       + "; fix: write the plan again: wpk optimize");
    }
    std::unordered_map<std::int64_t, void*> places;
    for (std::size_t number = 0; number < tensors.size(); ++number)
    {
        places[static_cast<std::int64_t>(number) + 1] = place(tensors[number]);
    }
    const cudnnHandle_t handle = state_->handle->get();
    require_success(frontend::detail::set_stream(handle, reinterpret_cast<cudaStream_t>(stream)), "take a stream");
    require_good(state_->graph->execute_plan_at_index(handle, places, place(workspace), 0), "run");
}

} // namespace wpk
