// wpk-run: execute a plan once or often, with what it reads and writes in files.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/c_api/device.hpp"
#include "plugins/c_api/wpk.h"
#include "plugins/core/error.hpp"

namespace
{

using wpk::Code;
using wpk::driver;
using wpk::Error;

const char* const usage = "usage: wpk-run PLAN [--dim NAME=SIZE]... [--input NAME=FILE]... [--output NAME=FILE]... "
                          "[--repeat N]\n"
                          "  Inputs without a file are zero. Files hold the tensor's bytes, dense, in C's order.\n"
                          "  Prints how long the first result took, from the start of the program on. --repeat N "
                          "measures N runs, and prints\n"
                          "  their median.\n";

using Clock = std::chrono::steady_clock;
using Named = std::map<std::string, std::string>;

struct Request
{
    std::string plan;
    Named dims, inputs, outputs;
    long repeat = 0;
};

long number(const std::string& text, const std::string& flag)
{
    std::size_t used = 0;
    long value = 0;
    try
    {
        value = std::stol(text, &used);
    }
    catch (const std::exception&)
    {
        used = 0;
    }
    if (used == 0 || used != text.size() || value < 1)
    {
        throw Error(Code::invalid_argument, flag + " is given '" + text + "'; fix: give a number that is at least 1");
    }
    return value;
}

Request parse(int count, char** words)
{
    Request request;
    std::map<std::string, Named*> named{
        {"--dim", &request.dims}, {"--input", &request.inputs}, {"--output", &request.outputs}};
    for (int i = 1; i < count; ++i)
    {
        const std::string word = words[i];
        const auto kind = named.find(word);
        if (kind == named.end() && word != "--repeat")
        {
            if (word.rfind("--", 0) == 0 || !request.plan.empty())
            {
                throw Error(Code::invalid_argument, "'" + word + "' is not understood; fix: see wpk-run --help");
            }
            request.plan = word;
            continue;
        }
        if (++i == count)
        {
            throw Error(Code::invalid_argument, word + " lacks its value; fix: see wpk-run --help");
        }
        const std::string value = words[i];
        const std::size_t equals = value.rfind('=');
        if (kind == named.end())
        {
            request.repeat = number(value, word);
        }
        else if (equals == std::string::npos || equals == 0)
        {
            throw Error(Code::invalid_argument,
                word + " is given '" + value + "', expected NAME=VALUE; fix: see wpk-run --help");
        }
        else
        {
            (*kind->second)[value.substr(0, equals)] = value.substr(equals + 1);
        }
    }
    if (request.plan.empty())
    {
        throw Error(Code::invalid_argument, "no plan is given; fix: see wpk-run --help");
    }
    return request;
}

void check(wpk_status status)
{
    if (status != WPK_OK)
    {
        throw Error(Code::invalid_argument, wpk_last_error());
    }
}

struct Port
{
    wpk_direction direction;
    std::size_t number;
    std::string name;
    std::uint64_t bytes;
    wpk::DeviceMemory memory;
};

void print(const wpk_engine* engine, const Port& port)
{
    static const char* const types[] = {"", "fp32", "fp16", "bf16", "int8", "uint8", "int32", "int64", "bool", "int16",
        "uint16", "uint32", "uint64", "fp64", "fp8_e4m3", "fp8_e5m2"};
    wpk_type type{};
    std::size_t rank = 0;
    check(wpk_element_type(engine, port.direction, port.number, &type));
    check(wpk_rank(engine, port.direction, port.number, &rank));
    std::vector<std::int64_t> shape(rank);
    check(wpk_shape(engine, port.direction, port.number, shape.data()));
    std::string text;
    for (const std::int64_t size : shape)
    {
        text += (text.empty() ? "" : ", ") + std::to_string(size);
    }
    std::printf("%s\t%s\t%s[%s]\n", port.direction == WPK_INPUT ? "input" : "output", port.name.c_str(), types[type],
        text.c_str());
}

std::vector<Port> ports_of(const wpk_engine* engine)
{
    std::vector<Port> ports;
    for (const wpk_direction direction : {WPK_INPUT, WPK_OUTPUT})
    {
        std::size_t count = 0;
        check(wpk_count(engine, direction, &count));
        for (std::size_t i = 0; i < count; ++i)
        {
            const char* name = nullptr;
            std::uint64_t bytes = 0;
            check(wpk_name(engine, direction, i, &name));
            check(wpk_bytes(engine, direction, i, &bytes));
            ports.push_back({direction, i, name, bytes, wpk::allocate(bytes)});
            print(engine, ports.back());
        }
    }
    return ports;
}

void require_known(const Named& files, const std::vector<Port>& ports, wpk_direction direction)
{
    for (const auto& [name, file] : files)
    {
        const auto is_it = [&, wanted = name](const Port& p)
        {
            return p.direction == direction && p.name == wanted;
        };
        if (std::none_of(ports.begin(), ports.end(), is_it))
        {
            throw Error(Code::invalid_argument, "the plan has no "
                                                    + std::string(direction == WPK_INPUT ? "input" : "output") + " '"
                                                    + name + "'; fix: give one of those that are printed");
        }
    }
}

void fill(const Port& port, const Named& files)
{
    std::vector<char> data(port.bytes);
    const auto file = files.find(port.name);
    if (file != files.end())
    {
        std::ifstream stream(file->second, std::ios::binary | std::ios::ate);
        const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(stream.tellg(), 0));
        if (!stream || size != port.bytes || !stream.seekg(0).read(data.data(), static_cast<std::streamsize>(size)))
        {
            throw Error(Code::io, "'" + file->second + "' holds " + std::to_string(size)
                                      + " bytes that can be read, input '" + port.name + "' has "
                                      + std::to_string(port.bytes) + "; fix: give a file of that size");
        }
    }
    wpk::require(driver().cuMemcpyHtoD(port.memory.get(), data.data(), data.size()), "copy an input");
    // A copy of pageable memory returns when it is staged, and the run's stream does not wait for the legacy one.
    wpk::require(driver().cuStreamSynchronize(nullptr), "finish copying an input");
}

void save(const Port& port, const Named& files)
{
    const auto file = files.find(port.name);
    if (file == files.end())
    {
        return;
    }
    std::vector<char> data(port.bytes);
    wpk::require(driver().cuMemcpyDtoH(data.data(), port.memory.get(), data.size()), "copy an output");
    std::ofstream stream(file->second, std::ios::binary);
    if (!stream.write(data.data(), static_cast<std::streamsize>(data.size())).flush())
    {
        throw Error(Code::io, "'" + file->second + "' cannot be written; fix: check folder and permissions");
    }
}

// Median milliseconds of runs on a stream, each between two events, after some that are not counted.
double median_of(wpk_engine* engine, CUstream stream, long repeat)
{
    constexpr int warm_up = 10;
    CUevent handles[2] = {};
    wpk::require(driver().cuEventCreate(&handles[0], 0), "make an event");
    const wpk::Event begin(handles[0]);
    wpk::require(driver().cuEventCreate(&handles[1], 0), "make an event");
    const wpk::Event end(handles[1]);
    std::vector<double> times;
    for (long i = -warm_up; i < repeat; ++i)
    {
        float milliseconds = 0;
        wpk::require(driver().cuEventRecord(begin.get(), stream), "mark a stream");
        check(wpk_run(engine, stream));
        wpk::require(driver().cuEventRecord(end.get(), stream), "mark a stream");
        wpk::require(driver().cuEventSynchronize(end.get()), "finish a run");
        wpk::require(driver().cuEventElapsedTime(&milliseconds, begin.get(), end.get()), "tell the time");
        if (i >= 0)
        {
            times.push_back(milliseconds);
        }
    }
    std::sort(times.begin(), times.end());
    const std::size_t half = times.size() / 2;
    return times.size() % 2 != 0 ? times[half] : (times[half - 1] + times[half]) / 2;
}

double milliseconds_since(Clock::time_point start)
{
    return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

void execute(const Request& request, Clock::time_point started)
{
    const wpk::Context context;
    const wpk::Current current(context);
    wpk_engine* opened = nullptr;
    check(wpk_open(request.plan.c_str(), &opened));
    const std::unique_ptr<wpk_engine, wpk_status (*)(wpk_engine*)> engine(opened, &wpk_close);
    for (const auto& [name, size] : request.dims)
    {
        check(wpk_set_dimension(opened, name.c_str(), number(size, "--dim " + name)));
    }
    const std::vector<Port> ports = ports_of(opened);
    require_known(request.inputs, ports, WPK_INPUT);
    require_known(request.outputs, ports, WPK_OUTPUT);
    for (const Port& port : ports)
    {
        if (port.direction == WPK_INPUT)
        {
            fill(port, request.inputs);
        }
        check(wpk_bind_number(opened, port.direction, port.number, port.memory.get()));
    }
    check(wpk_capture(opened));
    const wpk::Stream stream = wpk::make_stream();
    check(wpk_run(opened, stream.get()));
    wpk::require(driver().cuStreamSynchronize(stream.get()), "finish a run");
    std::printf("first_result_ms\t%.3f\n", milliseconds_since(started));
    std::fflush(stdout);
    if (request.repeat > 0)
    {
        std::printf("median_ms of %ld runs\t%.4f\n", request.repeat, median_of(opened, stream.get(), request.repeat));
    }
    for (const Port& port : ports)
    {
        if (port.direction == WPK_OUTPUT)
        {
            save(port, request.outputs);
        }
    }
}

} // namespace

int main(int count, char** words)
{
    const Clock::time_point started = Clock::now();
    if (count == 2 && std::string(words[1]) == "--help")
    {
        std::fputs(usage, stdout);
        return 0;
    }
    try
    {
        execute(parse(count, words), started);
        return 0;
    }
    catch (const std::exception& error)
    {
        std::fprintf(stderr, "wpk-run: error: %s\n", error.what());
        return 1;
    }
}
