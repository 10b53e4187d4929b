// run_operator SPEC DATA RESULT THREADS DIM... : executes the first variant of an operator on the GPU.
//
// DATA has the bytes of the inputs, then those that the outputs hold before. RESULT gets the outputs of each thread:
// executed on a stream, and again as a graph that was captured there. Every thread has memory, kernels and a stream of
// its own, all in one context.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "plugins/core/error.hpp"
#include "plugins/core/launcher.hpp"
#include "plugins/libraries/libraries.hpp"

namespace
{

using namespace wpk;

constexpr int thread_local_capture = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
constexpr unsigned non_blocking = 1;    // CU_STREAM_NON_BLOCKING

std::vector<std::uint8_t> contents(const char* path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::uint64_t size_of(const Tensor& tensor, const Dims& dims)
{
    std::uint64_t bytes = bytes_of(tensor.type);
    for (const Expression& extent : tensor.shape)
    {
        bytes *= static_cast<std::uint64_t>(evaluate(extent, dims));
    }
    return bytes;
}

class Memory
{
public:
    explicit Memory(std::uint64_t bytes)
    {
        require(driver().cuMemAlloc(&address_, bytes + 1), "allocate memory");
    }
    Memory(Memory&& other) noexcept : address_(other.address_)
    {
        other.address_ = 0;
    }
    Memory& operator=(Memory&&) = delete;
    ~Memory()
    {
        if (address_ != 0)
        {
            driver().cuMemFree(address_);
        }
    }
    std::uint64_t address() const noexcept
    {
        return address_;
    }

private:
    CUdeviceptr address_ = 0;
};

// What one thread executes, on memory of its own.
class Execution
{
public:
    Execution(const OperatorSpec& spec, const Dims& dims, const std::vector<std::uint8_t>& data)
        : spec_(spec), dims_(dims), data_(data), kernels_(spec.kernels, launches_in(spec))
    {
        const Work& work = spec.variants.at(0).work;
        for (const auto* tensors : {&spec.inputs, &spec.outputs})
        {
            for (const Tensor& tensor : *tensors)
            {
                sizes_.push_back(size_of(tensor, dims));
                memory_.emplace_back(sizes_.back());
                auto& side = tensors == &spec.inputs ? addresses_.inputs : addresses_.outputs;
                side.push_back(memory_.back().address());
            }
        }
        const std::uint64_t counters = counter_bytes(work, dims);
        memory_.emplace_back(workspace_bytes(work, dims));
        addresses_.workspace = memory_.back().address();
        memory_.emplace_back(counters);
        addresses_.counters = memory_.back().address();
        require(driver().cuStreamCreate(&stream_, non_blocking), "make a stream");
        require(driver().cuMemsetD8Async(addresses_.counters, 0, counters + 1, stream_), "clear counters");
        if (const auto* call = std::get_if<LibraryCall>(&work))
        {
            call_ = Libraries().prepare(*call);
        }
        for (const Launch& launch : launches_of(work))
        {
            bound_.emplace_back(launch, kernels_.at(launch.kernel), addresses_, dims);
        }
    }

    Execution(const Execution&) = delete;
    Execution& operator=(const Execution&) = delete;

    ~Execution()
    {
        driver().cuStreamDestroy(stream_);
    }

    std::vector<std::uint8_t> outputs()
    {
        fill();
        enqueue();
        return read();
    }

    std::vector<std::uint8_t> captured_outputs()
    {
        fill();
        CUgraph graph = nullptr;
        CUgraphExec executable = nullptr;
        require(driver().cuStreamBeginCapture(stream_, thread_local_capture), "begin a capture");
        enqueue();
        require(driver().cuStreamEndCapture(stream_, &graph), "end a capture");
        require(driver().cuGraphInstantiate(&executable, graph, 0), "make a graph");
        require(driver().cuGraphLaunch(executable, stream_), "start a graph");
        std::vector<std::uint8_t> found = read();
        driver().cuGraphExecDestroy(executable);
        driver().cuGraphDestroy(graph);
        return found;
    }

private:
    static std::vector<const Launch*> launches_in(const OperatorSpec& spec)
    {
        std::vector<const Launch*> found;
        for (const Launch& launch : launches_of(spec.variants.at(0).work))
        {
            found.push_back(&launch);
        }
        return found;
    }

    void fill()
    {
        const std::uint8_t* from = data_.data();
        for (std::size_t i = 0; i < sizes_.size(); ++i)
        {
            require(driver().cuMemcpyHtoD(memory_[i].address(), from, sizes_[i]), "write an operand");
            from += sizes_[i];
        }
        // A copy of pageable memory returns when it is staged, and this stream does not wait for the legacy one.
        require(driver().cuStreamSynchronize(nullptr), "finish writing operands");
    }

    void enqueue()
    {
        if (call_ != nullptr)
        {
            call_->put_on(stream_, addresses_);
        }
        for (const BoundLaunch& launch : bound_)
        {
            require(launch.enqueue(stream_), "launch a kernel");
        }
    }

    std::vector<std::uint8_t> read()
    {
        require(driver().cuStreamSynchronize(stream_), "execute");
        std::vector<std::uint8_t> found;
        for (std::size_t i = spec_.inputs.size(); i < sizes_.size(); ++i)
        {
            std::vector<std::uint8_t> output(sizes_[i]);
            require(driver().cuMemcpyDtoH(output.data(), memory_[i].address(), sizes_[i]), "read an output");
            found.insert(found.end(), output.begin(), output.end());
        }
        return found;
    }

    const OperatorSpec& spec_;
    const Dims& dims_;
    const std::vector<std::uint8_t>& data_;
    LoadedKernels kernels_;
    std::vector<std::uint64_t> sizes_;
    std::vector<Memory> memory_;
    Addresses addresses_;
    CUstream stream_ = nullptr;
    std::vector<BoundLaunch> bound_;
    std::shared_ptr<ReadyCall> call_;
};

void run(int count, char** words)
{
    const std::vector<std::uint8_t> spec_bytes = contents(words[1]), data = contents(words[2]);
    const OperatorSpec spec = read_operator(reinterpret_cast<const std::byte*>(spec_bytes.data()), spec_bytes.size());
    Dims dims;
    for (int i = 5; i < count; ++i)
    {
        dims.push_back(std::atoll(words[i]));
    }
    CUcontext context = nullptr;
    require(driver().cuDevicePrimaryCtxRetain(&context, 0), "take the GPU");
    std::vector<std::vector<std::uint8_t>> results(static_cast<std::size_t>(std::atoi(words[4])));
    std::vector<std::string> failures(results.size());
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < results.size(); ++number)
    {
        threads.emplace_back(
            [&, number]
            {
                try
                {
                    require(driver().cuCtxPushCurrent(context), "take the GPU");
                    Execution execution(spec, dims, data);
                    results[number] = execution.outputs();
                    const std::vector<std::uint8_t> captured = execution.captured_outputs();
                    results[number].insert(results[number].end(), captured.begin(), captured.end());
                }
                catch (const std::exception& error)
                {
                    failures[number] = error.what();
                }
            });
    }
    for (std::thread& each : threads)
    {
        each.join();
    }
    for (const std::string& failure : failures)
    {
        if (!failure.empty())
        {
            throw Error(Code::driver, failure);
        }
    }
    std::ofstream out(words[3], std::ios::binary);
    for (const auto& each : results)
    {
        out.write(reinterpret_cast<const char*>(each.data()), static_cast<std::streamsize>(each.size()));
    }
    driver().cuDevicePrimaryCtxRelease(0);
}

} // namespace

int main(int count, char** words)
{
    if (count < 5)
    {
        std::fputs("usage: run_operator SPEC DATA RESULT THREADS DIM...\n", stderr);
        return 2;
    }
    try
    {
        run(count, words);
        return 0;
    }
    catch (const std::exception& error)
    {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
