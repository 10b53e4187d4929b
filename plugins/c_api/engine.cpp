#include "plugins/c_api/engine.hpp"

#include <algorithm>
#include <utility>

#include "plugins/c_api/container.hpp"
#include "plugins/core/error.hpp"

namespace wpk
{
namespace
{

constexpr std::uint64_t most_spec_bytes = 256 << 20;
constexpr int thread_local_capture = 1;

PlanSpec read_spec(const Container& file)
{
    const std::vector<std::byte> data = file.read("plan.spec", most_spec_bytes);
    return read_plan(data.data(), data.size());
}

// A stream's capture, which is ended whatever happens.
class Capture
{
public:
    explicit Capture(CUstream stream) : stream_(stream)
    {
        require(driver().cuStreamBeginCapture(stream, thread_local_capture), "begin a graph");
    }

    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;

    ~Capture()
    {
        if (stream_ != nullptr)
        {
            CUgraph graph = nullptr;
            driver().cuStreamEndCapture(stream_, &graph);
            Graph given_back(graph);
        }
    }

    Graph end()
    {
        CUgraph graph = nullptr;
        const CUresult status = driver().cuStreamEndCapture(std::exchange(stream_, nullptr), &graph);
        Graph ended(graph);
        require(status, "end a graph");
        return ended;
    }

private:
    CUstream stream_;
};

} // namespace

Engine::Engine(const std::string& path)
{
    const Container file(path);
    plan_ = read_spec(file);
    for (const PlanSpec::Dimension& dimension : plan_.dimensions)
    {
        dims_.push_back(dimension.tuned);
    }
    addresses_.resize(plan_.inputs.size() + plan_.outputs.size());
    const Current current(context_);
    // Nothing here is a member yet: whatever fails, all is given back while the context is current.
    LoadedWork work = load_work(file, plan_, dims_);
    Weights weights = upload_weights(file, plan_.weights);
    Stream stream = make_stream();
    Event end = make_event();
    work_ = std::move(work);
    weights_ = std::move(weights);
    stream_ = std::move(stream);
    end_ = std::move(end);
}

Engine::~Engine()
{
    const Driver& cuda = driver();
    CUcontext popped = nullptr;
    const bool is_current = cuda.cuCtxPushCurrent(context_.handle()) == 0;
    executable_ = {};
    binding_ = {};
    end_ = {};
    stream_ = {};
    counters_ = {};
    workspace_ = {};
    arena_ = {};
    weights_ = {};
    work_.reset();
    if (is_current)
    {
        cuda.cuCtxPopCurrent(&popped);
    }
}

void Engine::set_dimension(const std::string& name, std::int64_t size)
{
    std::string known;
    for (std::size_t i = 0; i < plan_.dimensions.size(); ++i)
    {
        if (plan_.dimensions[i].name == name)
        {
            const PlanSpec::Dimension& dimension = plan_.dimensions[i];
            if (size < 1)
            {
                throw Error(Code::invalid_argument,
                    "'" + name + "' is given the size " + std::to_string(size) + "; fix: give one that is at least 1");
            }
            if (size < dimension.smallest || size > dimension.largest)
            {
                throw Error(Code::invalid_argument,
                    "'" + name + "' is given the size " + std::to_string(size) + "; fix: give one from "
                        + std::to_string(dimension.smallest) + " to " + std::to_string(dimension.largest)
                        + ", or write a plan for more: wpk optimize --shapes NAME:MIN:OPT:MAX");
            }
            is_ready_ = is_ready_ && dims_[i] == size;
            dims_[i] = size;
            return;
        }
        known += (known.empty() ? "" : ", ") + plan_.dimensions[i].name;
    }
    throw Error(Code::invalid_argument,
        "the plan has no free dimension '" + name + "'; fix: its free dimensions: " + (known.empty() ? "none" : known));
}

void Engine::bind_port(std::size_t number, std::uint64_t address)
{
    is_ready_ = is_ready_ && addresses_[number] == address;
    addresses_[number] = address;
}

void Engine::capture()
{
    is_ready_ = false;
    const std::vector<SizedPort> ports = size_ports(plan_, dims_);
    check_addresses(ports, addresses_);
    const Layouts layouts = lay_out(plan_, dims_);
    const Current current(context_);
    wait();
    executable_ = {};
    binding_ = {};
    hold(layouts);
    const Places places{arena_.get(), workspace_.get(), counters_.get(), weights_.addresses};
    binding_ = bind_plan(plan_, *work_, layouts, places, ports, addresses_, dims_);
    Capture capture(stream_.get());
    put_on(stream_.get(), binding_);
    const Graph graph = capture.end();
    CUgraphExec executable = nullptr;
    require(driver().cuGraphInstantiate(&executable, graph.get(), 0), "make a graph");
    executable_ = Executable(executable);
    is_ready_ = true;
}

void Engine::run(CUstream stream)
{
    if (!is_ready_)
    {
        throw Error(Code::invalid_argument,
            "the engine is not ready for its sizes and addresses; fix: call wpk_capture after wpk_bind and "
            "wpk_set_dimension");
    }
    const Driver& cuda = driver();
    const Current current(context_);
    if (front_of(stream).graph != nullptr)
    {
        end_overlap(stream);
        put_on(stream, binding_);
        end_overlap(stream);
        return;
    }
    if (has_run_)
    {
        require(cuda.cuStreamWaitEvent(stream, end_.get(), 0), "order two streams");
    }
    require(cuda.cuGraphLaunch(executable_.get(), stream), "start a graph");
    has_run_ = true;
    require(cuda.cuEventRecord(end_.get(), stream), "mark a stream");
}

void Engine::wait()
{
    if (has_run_)
    {
        has_run_ = false;
        const Current current(context_);
        require(driver().cuEventSynchronize(end_.get()), "finish the last run");
    }
}

void Engine::hold(const Layouts& layouts)
{
    const std::uint64_t asked[3] = {layouts.arena.bytes, layouts.workspace.bytes, layouts.counters.bytes};
    DeviceMemory* const memory[3] = {&arena_, &workspace_, &counters_};
    for (int i = 0; i < 3; ++i)
    {
        if (memory[i]->get() != 0 && asked[i] <= held_[i])
        {
            continue;
        }
        *memory[i] = {}; // before more is asked for
        DeviceMemory grown = allocate(asked[i]);
        if (i == 2 && asked[i] > 0)
        {
            // Kernels leave counters zero.
            require(driver().cuMemsetD8Async(grown.get(), 0, asked[i], stream_.get()), "clear memory");
            require(driver().cuStreamSynchronize(stream_.get()), "clear memory");
        }
        *memory[i] = std::move(grown);
        held_[i] = asked[i];
    }
}

} // namespace wpk
