// A double of libcuda for tests: its memory is the host's, its graphs are executed here, and it records what is
// called. It is ours: it shows that wpk asks for what it means to ask for, not that a GPU's driver does it.
//
// A cubin is an ELF header and text behind it, a letter for each parameter: p address, i int32, m tensor map, a
// another address. A kernel with a p writes the sum of all of its inputs into its last p, as many fp32 as its last i
// says. A graph executes what may be executed in the reverse of the order in which it was captured, so that a missing
// edge shows. A tensor map is encoded as its address and a digest of what was asked. A real cubin is loaded too: its
// launches are recorded with the parameters that it says it has, and do nothing.
//
// Any thread may call it. When a capture ends, each node of the graph gets a line with those that it follows.
//
// WPK_RECORD names a file that gets a line for each call, and in the end what was not given back. WPK_FAIL_CALL is
// the number of the call, counted from 1, that fails. Calls that give something back never fail.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <elf.h>

#include "plugins/core/cuda_driver.hpp"

// Its own memory, bound within (see CMakeLists.txt): a program whose allocations fail is no business of a driver's.
void* operator new(std::size_t size)
{
    void* memory = std::malloc(size != 0 ? size : 1);
    if (memory == nullptr)
    {
        throw std::bad_alloc();
    }
    return memory;
}

void operator delete(void* memory) noexcept
{
    std::free(memory);
}

void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}

struct CUctx_st
{
    int unused;
};
struct CUevent_st
{
    int unused;
};
struct CUkern_st
{
    std::string parameters;
};
struct CUlib_st
{
    std::map<std::string, CUkern_st> kernels;
    CUkern_st any; // where names mean nothing
};
struct CUgraphNode_st
{
    const char* kind;
    std::function<void()> work;
    std::vector<CUgraphNode> before;
};
struct CUgraph_st
{
    std::vector<std::shared_ptr<CUgraphNode_st>> nodes;
};
struct CUgraphExec_st
{
    CUgraph_st graph;
};
struct CUstream_st
{
    CUgraph graph = nullptr;
    std::vector<CUgraphNode> front;
};

namespace
{

constexpr std::size_t text_begin = 128; // an ELF header, and one section header
constexpr CUresult success = 0, out_of_memory = 2, unknown = 999;

class Record
{
public:
    Record()
    {
        const char* path = std::getenv("WPK_RECORD");
        file_ = path != nullptr ? std::fopen(path, "w") : nullptr;
        const char* failing = std::getenv("WPK_FAIL_CALL");
        failing_ = failing != nullptr ? std::atol(failing) : 0;
    }

    ~Record()
    {
        if (file_ != nullptr)
        {
            std::fprintf(file_, "left %zu\n", living_.size());
            std::fclose(file_);
        }
    }

    void line(const std::string& text)
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        if (file_ != nullptr)
        {
            std::fprintf(file_, "%s\n", text.c_str());
            std::fflush(file_);
        }
    }

    bool fails(const std::string& text)
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        line(text);
        return ++calls_ == failing_;
    }

    template <typename T>
    T* keep(T* made)
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        living_.insert(made);
        return made;
    }

    template <typename T>
    CUresult give_back(const char* text, T* object)
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        line(text);
        if (object == nullptr || living_.erase(object) == 0)
        {
            line("wrong: given back twice");
            return unknown;
        }
        delete object;
        return success;
    }

    CUresult give_back_memory(const char* text, void* memory)
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        line(text);
        if (living_.erase(memory) == 0)
        {
            line("wrong: given back twice");
            return unknown;
        }
        std::free(memory);
        return success;
    }

    // The primary context, which as many give back as have taken it.
    CUcontext take_primary()
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        if (primary_users_++ == 0)
        {
            primary_ = keep(new CUctx_st);
        }
        return primary_;
    }

    CUresult give_primary_back(const char* text)
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        if (primary_users_ > 1)
        {
            line(text);
            --primary_users_;
            return success;
        }
        primary_users_ = 0;
        return give_back(text, std::exchange(primary_, nullptr));
    }

    // The stack of the thread's contexts: no thread_local variable, in which LeakSanitizer stumbles in a library that
    // is loaded later.
    void push(CUcontext context)
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        contexts_[std::this_thread::get_id()].push_back(context);
    }

    CUcontext current()
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        const std::vector<CUcontext>& contexts = contexts_[std::this_thread::get_id()];
        return contexts.empty() ? nullptr : contexts.back();
    }

    CUcontext pop()
    {
        const std::lock_guard<std::recursive_mutex> lock(mutex_);
        const CUcontext popped = current();
        if (popped == nullptr)
        {
            line("wrong: no context to take off the stack");
            return nullptr;
        }
        contexts_[std::this_thread::get_id()].pop_back();
        return popped;
    }

private:
    std::recursive_mutex mutex_;
    std::FILE* file_;
    long calls_ = 0, failing_;
    std::set<void*> living_;
    CUcontext primary_ = nullptr;
    int primary_users_ = 0;
    std::map<std::thread::id, std::vector<CUcontext>> contexts_;
};

Record record;
CUstream_st legacy;

CUstream_st& of(CUstream stream)
{
    return stream != nullptr ? *stream : legacy;
}

void* memory(CUdeviceptr address)
{
    return reinterpret_cast<void*>(address);
}

void put(CUstream stream, const char* kind, std::function<void()> work)
{
    CUstream_st& on = of(stream);
    if (on.graph == nullptr)
    {
        work();
        return;
    }
    on.graph->nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{kind, std::move(work), on.front}));
    on.front = {on.graph->nodes.back().get()};
}

void tell(const CUgraph_st& graph)
{
    std::map<CUgraphNode, std::size_t> numbers;
    for (const auto& node : graph.nodes)
    {
        std::string text = "node " + std::to_string(numbers.size()) + " " + node->kind + " after";
        for (const CUgraphNode other : node->before)
        {
            text += " " + std::to_string(numbers.at(other));
        }
        record.line(text);
        numbers.emplace(node.get(), numbers.size());
    }
}

void execute(const CUgraph_st& graph)
{
    std::set<CUgraphNode> done;
    while (done.size() < graph.nodes.size())
    {
        for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
        {
            const auto& before = (*node)->before;
            const auto is_done = [&](CUgraphNode other)
            {
                return done.count(other) != 0;
            };
            if (!is_done(node->get()) && std::all_of(before.begin(), before.end(), is_done))
            {
                (*node)->work();
                done.insert(node->get());
                break;
            }
        }
    }
}

void add_up(const std::vector<const float*>& inputs, float* output, int count)
{
    for (int i = 0; i < count; ++i)
    {
        float sum = 0;
        for (const float* input : inputs)
        {
            sum += input[i];
        }
        output[i] = sum;
    }
}

template <typename Number>
std::string listed(const Number* numbers, std::size_t count)
{
    std::string text;
    for (std::size_t i = 0; i < count; ++i)
    {
        text += " " + std::to_string(numbers[i]);
    }
    return text;
}

wpk::TensorMapDescriptor encoded(void* address, const std::string& asked)
{
    wpk::TensorMapDescriptor map{};
    map.words[0] = reinterpret_cast<std::uint64_t>(address);
    map.words[1] = std::hash<std::string>{}(asked);
    return map;
}

std::string said_of(const wpk::LaunchAttribute& attribute)
{
    const auto& value = attribute.value;
    return " attribute " + std::to_string(attribute.id)
           + (attribute.id == wpk::attribute_cluster ? listed(&value.cluster.x, 3)
                                                     : " " + std::to_string(value.programmatic_serialization));
}

// Kinds of a kernel's parameters, as its section .nv.info.NAME says: of 4 bytes, of 8, and tensor maps of 128; none for
// other sizes.
std::optional<std::string> parameters_of(const char* info, std::size_t size)
{
    constexpr unsigned char sized = 4, parameter_info = 0x17;
    constexpr unsigned size_shift = 18;
    std::map<std::uint16_t, char> kinds;
    for (std::size_t at = 0; at + 4 <= size;)
    {
        std::uint16_t length = 0;
        std::memcpy(&length, info + at + 2, sizeof length);
        if (info[at] == sized && info[at + 1] == parameter_info)
        {
            std::uint16_t ordinal = 0;
            std::uint32_t packed = 0;
            std::memcpy(&ordinal, info + at + 8, sizeof ordinal);
            std::memcpy(&packed, info + at + 12, sizeof packed);
            const std::uint32_t bytes = packed >> size_shift;
            if (bytes != 4 && bytes != 8 && bytes != sizeof(wpk::TensorMapDescriptor))
            {
                return std::nullopt;
            }
            kinds[ordinal] = bytes == 4 ? 'i' : 'a';
        }
        at += info[at] == sized ? std::size_t{4} + length : 4;
    }
    std::string parameters;
    for (const auto& [ordinal, kind] : kinds)
    {
        parameters += kind;
    }
    return parameters;
}

// None where a parameter cannot be told.
std::optional<CUlib_st> loaded_from(const char* code)
{
    const std::string prefix = ".nv.info.";
    CUlib_st library;
    Elf64_Ehdr header;
    std::memcpy(&header, code, sizeof header);
    if (header.e_shnum <= 1)
    {
        library.any = {code + text_begin};
        return library;
    }
    std::vector<Elf64_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), code + header.e_shoff, sections.size() * sizeof(Elf64_Shdr));
    for (const Elf64_Shdr& section : sections)
    {
        const std::string name = code + sections.at(header.e_shstrndx).sh_offset + section.sh_name;
        if (name.rfind(prefix, 0) == 0)
        {
            const auto parameters = parameters_of(code + section.sh_offset, section.sh_size);
            if (!parameters)
            {
                return std::nullopt;
            }
            library.kernels[name.substr(prefix.size())] = {*parameters};
        }
    }
    return library;
}

CUresult allocate(const char* text, std::size_t size, void** out)
{
    if (record.fails(std::string(text) + " " + std::to_string(size)))
    {
        return out_of_memory;
    }
    *out = record.keep(std::aligned_alloc(256, (size + 255) / 256 * 256));
    std::memset(*out, 0xA5, size);
    record.line("at " + std::to_string(reinterpret_cast<std::uint64_t>(*out)));
    return success;
}

} // namespace

#define WPK_CALL(text)      \
    if (record.fails(text)) \
    {                       \
        return unknown;     \
    }

extern "C"
{

    CUresult cuInit(unsigned)
    {
        WPK_CALL("cuInit");
        return success;
    }

    CUresult cuDriverGetVersion(int* version)
    {
        WPK_CALL("cuDriverGetVersion");
        *version = 13000;
        return success;
    }

    CUresult cuGetErrorName(CUresult, const char** name)
    {
        *name = "CUDA_ERROR_OF_THE_DOUBLE";
        return success;
    }

    CUresult cuGetErrorString(CUresult, const char** text)
    {
        *text = "a failure that a test asked for";
        return success;
    }

    CUresult cuCtxGetCurrent(CUcontext* context)
    {
        WPK_CALL("cuCtxGetCurrent");
        *context = record.current();
        return success;
    }

    CUresult cuCtxGetDevice(CUdevice* device)
    {
        WPK_CALL("cuCtxGetDevice");
        *device = 0;
        return success;
    }

    CUresult cuCtxPushCurrent_v2(CUcontext context)
    {
        WPK_CALL("cuCtxPushCurrent");
        record.push(context);
        return success;
    }

    CUresult cuCtxPopCurrent_v2(CUcontext* context)
    {
        record.line("cuCtxPopCurrent");
        *context = record.pop();
        return *context != nullptr ? success : unknown;
    }

    CUresult cuDeviceGet(CUdevice* device, int)
    {
        WPK_CALL("cuDeviceGet");
        *device = 0;
        return success;
    }

    CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice)
    {
        WPK_CALL("cuDevicePrimaryCtxRetain");
        *context = record.take_primary();
        return success;
    }

    CUresult cuDevicePrimaryCtxRelease_v2(CUdevice)
    {
        return record.give_primary_back("cuDevicePrimaryCtxRelease");
    }

    CUresult cuMemAlloc_v2(CUdeviceptr* address, std::size_t size)
    {
        return allocate("cuMemAlloc", size, reinterpret_cast<void**>(address));
    }

    CUresult cuMemFree_v2(CUdeviceptr address)
    {
        return record.give_back_memory("cuMemFree", memory(address));
    }

    CUresult cuMemAllocHost_v2(void** address, std::size_t size)
    {
        return allocate("cuMemAllocHost", size, address);
    }

    CUresult cuMemFreeHost(void* address)
    {
        return record.give_back_memory("cuMemFreeHost", address);
    }

    CUresult cuMemcpyHtoD_v2(CUdeviceptr target, const void* source, std::size_t size)
    {
        WPK_CALL("cuMemcpyHtoD " + std::to_string(size));
        std::memcpy(memory(target), source, size);
        return success;
    }

    CUresult cuMemcpyDtoH_v2(void* target, CUdeviceptr source, std::size_t size)
    {
        WPK_CALL("cuMemcpyDtoH " + std::to_string(size));
        std::memcpy(target, memory(source), size);
        return success;
    }

    CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr target, CUdeviceptr source, std::size_t size, CUstream stream)
    {
        WPK_CALL("cuMemcpyDtoDAsync " + std::to_string(size));
        put(stream, "copy", [=] { std::memcpy(memory(target), memory(source), size); });
        return success;
    }

    CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char byte, std::size_t size, CUstream stream)
    {
        WPK_CALL("cuMemsetD8Async " + std::to_string(size));
        put(stream, "fill", [=] { std::memset(memory(target), byte, size); });
        return success;
    }

    CUresult cuStreamCreate(CUstream* stream, unsigned)
    {
        WPK_CALL("cuStreamCreate");
        *stream = record.keep(new CUstream_st);
        return success;
    }

    CUresult cuStreamDestroy_v2(CUstream stream)
    {
        return record.give_back("cuStreamDestroy", stream);
    }

    CUresult cuStreamSynchronize(CUstream)
    {
        WPK_CALL("cuStreamSynchronize");
        return success;
    }

    CUresult cuStreamWaitEvent(CUstream, CUevent, unsigned)
    {
        WPK_CALL("cuStreamWaitEvent");
        return success;
    }

    CUresult cuEventCreate(CUevent* event, unsigned)
    {
        WPK_CALL("cuEventCreate");
        *event = record.keep(new CUevent_st);
        return success;
    }

    CUresult cuEventDestroy_v2(CUevent event)
    {
        return record.give_back("cuEventDestroy", event);
    }

    CUresult cuEventRecord(CUevent, CUstream)
    {
        WPK_CALL("cuEventRecord");
        return success;
    }

    CUresult cuEventSynchronize(CUevent)
    {
        WPK_CALL("cuEventSynchronize");
        return success;
    }

    CUresult cuEventElapsedTime(float* milliseconds, CUevent, CUevent)
    {
        WPK_CALL("cuEventElapsedTime");
        *milliseconds = 0.125F;
        return success;
    }

    CUresult cuStreamBeginCapture_v2(CUstream stream, int)
    {
        WPK_CALL("cuStreamBeginCapture");
        of(stream).graph = record.keep(new CUgraph_st);
        of(stream).front.clear();
        return success;
    }

    CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph)
    {
        *graph = std::exchange(of(stream).graph, nullptr);
        WPK_CALL("cuStreamEndCapture");
        tell(**graph);
        return success;
    }

    CUresult cuStreamIsCapturing(CUstream stream, int* status)
    {
        WPK_CALL("cuStreamIsCapturing");
        *status = of(stream).graph != nullptr;
        return success;
    }

    CUresult cuStreamGetCaptureInfo_v2(
        CUstream stream, int* status, std::uint64_t*, CUgraph* graph, const CUgraphNode** nodes, std::size_t* count)
    {
        WPK_CALL("cuStreamGetCaptureInfo");
        CUstream_st& on = of(stream);
        *status = on.graph != nullptr;
        *graph = on.graph;
        *nodes = on.front.data();
        *count = on.front.size();
        return success;
    }

    CUresult cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode* nodes, std::size_t count, unsigned)
    {
        WPK_CALL("cuStreamUpdateCaptureDependencies " + std::to_string(count));
        of(stream).front.assign(nodes, nodes + count);
        return success;
    }

    CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* before, std::size_t count)
    {
        WPK_CALL("cuGraphAddEmptyNode");
        graph->nodes.push_back(std::make_shared<CUgraphNode_st>(CUgraphNode_st{
            "nothing", [] { record.line("run nothing"); }, std::vector<CUgraphNode>(before, before + count)}));
        *node = graph->nodes.back().get();
        return success;
    }

    CUresult cuGraphInstantiateWithFlags(CUgraphExec* executable, CUgraph graph, unsigned long long)
    {
        WPK_CALL("cuGraphInstantiate");
        *executable = record.keep(new CUgraphExec_st{*graph});
        return success;
    }

    CUresult cuGraphDestroy(CUgraph graph)
    {
        return record.give_back("cuGraphDestroy", graph);
    }

    CUresult cuGraphExecDestroy(CUgraphExec executable)
    {
        return record.give_back("cuGraphExecDestroy", executable);
    }

    CUresult cuGraphLaunch(CUgraphExec executable, CUstream)
    {
        WPK_CALL("cuGraphLaunch");
        execute(executable->graph);
        return success;
    }

    CUresult cuLibraryLoadData(CUlibrary* library, const void* code, int*, void**, unsigned, int*, void**, unsigned)
    {
        WPK_CALL("cuLibraryLoadData");
        const std::optional<CUlib_st> loaded = loaded_from(static_cast<const char*>(code));
        if (!loaded)
        {
            record.line("wrong: machine code with parameters of an unknown size");
            return unknown;
        }
        *library = record.keep(new CUlib_st(*loaded));
        return success;
    }

    CUresult cuLibraryUnload(CUlibrary library)
    {
        return record.give_back("cuLibraryUnload", library);
    }

    CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name)
    {
        WPK_CALL(std::string("cuLibraryGetKernel ") + name);
        const auto found = library->kernels.find(name);
        *kernel = found != library->kernels.end() ? &found->second : &library->any;
        return success;
    }

    CUresult cuKernelSetAttribute(int attribute, int value, CUkernel, CUdevice)
    {
        WPK_CALL("cuKernelSetAttribute " + std::to_string(attribute) + " " + std::to_string(value));
        return success;
    }

    CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel)
    {
        WPK_CALL("cuKernelGetFunction");
        *function = reinterpret_cast<CUfunction>(kernel);
        return success;
    }

    CUresult cuTensorMapEncodeTiled(wpk::TensorMapDescriptor* map, int type, std::uint32_t rank, void* address,
        const std::uint64_t* shape, const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* steps,
        int interleave, int swizzle, int promotion, int fill)
    {
        const std::string asked =
            "type " + std::to_string(type) + " shape" + listed(shape, rank) + " strides" + listed(strides, rank - 1)
            + " box" + listed(box, rank) + " steps" + listed(steps, rank) + " modes " + std::to_string(interleave) + " "
            + std::to_string(swizzle) + " " + std::to_string(promotion) + " " + std::to_string(fill);
        WPK_CALL("cuTensorMapEncodeTiled " + asked);
        *map = encoded(address, asked);
        return success;
    }

    CUresult cuTensorMapEncodeIm2col(wpk::TensorMapDescriptor* map, int type, std::uint32_t rank, void* address,
        const std::uint64_t* shape, const std::uint64_t* strides, const int* lower, const int* upper,
        std::uint32_t channels, std::uint32_t pixels, const std::uint32_t* steps, int interleave, int swizzle,
        int promotion, int fill)
    {
        const std::string asked = "type " + std::to_string(type) + " shape" + listed(shape, rank) + " strides"
                                  + listed(strides, rank - 1) + " lower" + listed(lower, rank - 2) + " upper"
                                  + listed(upper, rank - 2) + " box " + std::to_string(channels) + " "
                                  + std::to_string(pixels) + " steps" + listed(steps, rank) + " modes "
                                  + std::to_string(interleave) + " " + std::to_string(swizzle) + " "
                                  + std::to_string(promotion) + " " + std::to_string(fill);
        WPK_CALL("cuTensorMapEncodeIm2col " + asked);
        *map = encoded(address, asked);
        return success;
    }

    CUresult cuLaunchKernelEx(
        const wpk::LaunchConfiguration* configuration, CUfunction function, void** parameters, void**)
    {
        const auto* kernel = reinterpret_cast<CUkern_st*>(function);
        std::vector<const float*> inputs;
        int count = 0;
        std::string said;
        for (const char kind : kernel->parameters)
        {
            const void* parameter = *parameters++;
            if (kind == 'i')
            {
                count = *static_cast<const int*>(parameter);
                said += " i" + std::to_string(count);
                continue;
            }
            const auto address = *static_cast<const std::uint64_t*>(parameter);
            said += std::string(" ") + kind + std::to_string(address);
            if (kind == 'p' || kind == 'm')
            {
                inputs.push_back(reinterpret_cast<const float*>(address));
            }
        }
        for (unsigned i = 0; i < configuration->attribute_count; ++i)
        {
            said += said_of(configuration->attributes[i]);
        }
        WPK_CALL("cuLaunchKernelEx" + listed(configuration->grid, 3) + " block" + listed(configuration->block, 3)
                 + " shared " + std::to_string(configuration->shared_bytes) + said);
        if (inputs.empty())
        {
            put(configuration->stream, "launch", [] {});
            return success;
        }
        auto* output = const_cast<float*>(inputs.back());
        inputs.pop_back();
        put(configuration->stream, "launch", [=] { add_up(inputs, output, count); });
        return success;
    }

} // extern "C"
