// run_in_threads PLAN INPUT OUTPUT THREADS: an engine of the C API in each thread, all at once, and one that all share.
//
// INPUT has the bytes of the plan's only input for each thread, OUTPUT gets those of its only output, and behind them
// those that the shared engine makes of the first thread's input. Each thread runs its engine several times, makes a
// mistake of its own, and must be told of that one.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "plugins/c_api/device.hpp"
#include "plugins/c_api/wpk.h"

namespace
{

constexpr int runs = 20;

using Bytes = std::vector<char>;

void check(wpk_status status)
{
    if (status != WPK_OK)
    {
        throw std::runtime_error(wpk_last_error());
    }
}

// An engine with memory of its own.
class Bound
{
public:
    explicit Bound(const char* plan) : engine_(opened(plan), &wpk_close)
    {
        for (const wpk_direction direction : {WPK_INPUT, WPK_OUTPUT})
        {
            std::uint64_t& bytes = direction == WPK_INPUT ? input_bytes_ : output_bytes_;
            wpk::DeviceMemory& memory = direction == WPK_INPUT ? input_ : output_;
            check(wpk_bytes(engine_.get(), direction, 0, &bytes));
            memory = wpk::allocate(bytes);
            check(wpk_bind_number(engine_.get(), direction, 0, memory.get()));
        }
        check(wpk_capture(engine_.get()));
    }

    wpk_engine* engine() const
    {
        return engine_.get();
    }

    std::uint64_t input_bytes() const
    {
        return input_bytes_;
    }

    void set(const char* data)
    {
        wpk::require(wpk::driver().cuMemcpyHtoD(input_.get(), data, input_bytes_), "copy an input");
        wpk::require(wpk::driver().cuStreamSynchronize(nullptr), "copy an input");
    }

    void run_often() const
    {
        const wpk::Stream stream = wpk::make_stream();
        for (int i = 0; i < runs; ++i)
        {
            check(wpk_run(engine_.get(), stream.get()));
        }
        wpk::require(wpk::driver().cuStreamSynchronize(stream.get()), "finish runs");
    }

    Bytes output() const
    {
        Bytes data(output_bytes_);
        wpk::require(wpk::driver().cuMemcpyDtoH(data.data(), output_.get(), output_bytes_), "copy an output");
        return data;
    }

private:
    static wpk_engine* opened(const char* plan)
    {
        wpk_engine* engine = nullptr;
        check(wpk_open(plan, &engine));
        return engine;
    }

    std::uint64_t input_bytes_ = 0, output_bytes_ = 0;
    wpk::DeviceMemory input_, output_;
    std::unique_ptr<wpk_engine, wpk_status (*)(wpk_engine*)> engine_; // closed before its memory is given back
};

void require_own_error(const Bound& bound, std::size_t number)
{
    const std::string name = "dimension of thread " + std::to_string(number);
    const wpk_status status = wpk_set_dimension(bound.engine(), name.c_str(), 1);
    std::this_thread::yield();
    if (status != WPK_INVALID_ARGUMENT || std::string(wpk_last_error()).find("'" + name + "'") == std::string::npos)
    {
        throw std::runtime_error(name + " is not told of: " + wpk_last_error());
    }
}

Bytes work(const char* plan, const Bytes& inputs, const Bound& shared, std::size_t number)
{
    Bound own(plan);
    own.set(inputs.data() + number * own.input_bytes());
    own.run_often();
    require_own_error(own, number);
    shared.run_often();
    return own.output();
}

void execute(char** words)
{
    std::ifstream file(words[2], std::ios::binary);
    const Bytes inputs((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const auto count = static_cast<std::size_t>(std::atoi(words[4]));
    const wpk::Context context;
    const wpk::Current current(context);
    Bound shared(words[1]);
    if (inputs.size() != count * shared.input_bytes())
    {
        throw std::runtime_error("the file of inputs has another size");
    }
    shared.set(inputs.data());
    std::vector<Bytes> outputs(count);
    std::vector<std::string> failures(count);
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < count; ++number)
    {
        threads.emplace_back(
            [&, number]
            {
                try
                {
                    const wpk::Current in_this_thread(context);
                    outputs[number] = work(words[1], inputs, shared, number);
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
            throw std::runtime_error(failure);
        }
    }
    outputs.push_back(shared.output());
    std::ofstream out(words[3], std::ios::binary);
    for (const Bytes& each : outputs)
    {
        out.write(each.data(), static_cast<std::streamsize>(each.size()));
    }
}

} // namespace

int main(int count, char** words)
{
    if (count != 5)
    {
        std::fputs("usage: run_in_threads PLAN INPUT OUTPUT THREADS\n", stderr);
        return 2;
    }
    try
    {
        execute(words);
        return 0;
    }
    catch (const std::exception& error)
    {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
