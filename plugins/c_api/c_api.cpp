// wpk.h: statuses for exceptions. Nothing gets past these functions.
#include "plugins/c_api/wpk.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>

#include "plugins/c_api/engine.hpp"
#include "plugins/core/error.hpp"

struct wpk_engine
{
    explicit wpk_engine(const char* path) : engine(path) {}

    mutable std::mutex turn;
    wpk::Engine engine;
};

namespace
{

using wpk::Code;
using wpk::Error;

// Not a std::string: what is told where no memory is left needs none.
thread_local std::array<char, 2048> last_error{};

wpk_status fail(wpk_status status, const char* text) noexcept
{
    std::snprintf(last_error.data(), last_error.size(), "%s", text);
    return status;
}

wpk_status status_of(Code code) noexcept
{
    switch (code)
    {
    case Code::invalid_argument:
        return WPK_INVALID_ARGUMENT;
    case Code::damaged:
        return WPK_DAMAGED;
    case Code::unsupported:
        return WPK_UNSUPPORTED;
    case Code::no_driver:
        return WPK_NO_DRIVER;
    case Code::driver:
        return WPK_DRIVER;
    case Code::out_of_memory:
        return WPK_OUT_OF_MEMORY;
    case Code::io:
        return WPK_IO;
    }
    return WPK_INTERNAL;
}

// What a function does, with a status for what it throws.
template <typename Work>
wpk_status guarded(const Work& work) noexcept
{
    try
    {
        work();
        return WPK_OK;
    }
    catch (const Error& error)
    {
        return fail(status_of(error.code()), error.what());
    }
    catch (const std::bad_alloc&)
    {
        return fail(WPK_OUT_OF_MEMORY, "this machine's memory is used up; fix: end other programs");
    }
    catch (const std::exception& error)
    {
        return fail(WPK_INTERNAL, error.what());
    }
    catch (...)
    {
        return fail(WPK_INTERNAL, "an exception of no known type; fix: report it, this is a bug in wpk");
    }
}

void require_pointer(const void* pointer, const char* name)
{
    if (pointer == nullptr)
    {
        throw Error(Code::invalid_argument, std::string(name) + " is null; fix: give the address of one");
    }
}

// The same on an engine, while no other thread is in it.
template <typename EngineHandle, typename Work>
wpk_status on_engine(EngineHandle* engine, const Work& work) noexcept
{
    return guarded(
        [&]
        {
            require_pointer(engine, "the engine");
            const std::lock_guard turn(engine->turn);
            work(engine->engine);
        });
}

// Get something of an engine into `out`.
template <typename Out, typename Read>
wpk_status get(const wpk_engine* engine, Out* out, const Read& read) noexcept
{
    return on_engine(engine,
        [&](const wpk::Engine& of)
        {
            require_pointer(out, "where the answer goes");
            *out = static_cast<Out>(read(of));
        });
}

const std::vector<wpk::PlanSpec::Port>& ports_of(const wpk::Engine& engine, wpk_direction direction)
{
    if (direction != WPK_INPUT && direction != WPK_OUTPUT)
    {
        throw Error(Code::invalid_argument,
            "there is no direction " + std::to_string(direction) + "; fix: give WPK_INPUT or WPK_OUTPUT");
    }
    return direction == WPK_INPUT ? engine.plan().inputs : engine.plan().outputs;
}

template <typename Entries>
const auto& at(const Entries& entries, std::size_t number, const char* what)
{
    if (number >= entries.size())
    {
        throw Error(Code::invalid_argument, std::string("there is no ") + what + " " + std::to_string(number)
                                                + ", the plan has " + std::to_string(entries.size())
                                                + "; fix: count from 0");
    }
    return entries[number];
}

const wpk::PlanSpec::Port& port_at(const wpk::Engine& engine, wpk_direction direction, std::size_t number)
{
    return at(ports_of(engine, direction), number, direction == WPK_INPUT ? "input" : "output");
}

const wpk::PlanSpec::Value& value_at(const wpk::Engine& engine, wpk_direction direction, std::size_t number)
{
    return engine.plan().values[port_at(engine, direction, number).value];
}

// The number, inputs first, of the only port of a name.
std::size_t find_port(const wpk::PlanSpec& plan, const std::string& name)
{
    std::size_t found = 0, times = 0, number = 0;
    std::string known;
    for (const auto* ports : {&plan.inputs, &plan.outputs})
    {
        for (const wpk::PlanSpec::Port& port : *ports)
        {
            const std::string& own = plan.values[port.value].name;
            known += (known.empty() ? "" : ", ") + own;
            if (own == name)
            {
                found = number;
                ++times;
            }
            ++number;
        }
    }
    if (times == 0)
    {
        throw Error(
            Code::invalid_argument, "the plan has no input or output '" + name + "'; fix: give one of " + known);
    }
    if (times > 1)
    {
        throw Error(Code::invalid_argument,
            "'" + name + "' is an input and an output of the plan; fix: bind each with wpk_bind_number");
    }
    return found;
}

} // namespace

extern "C"
{

    const char* wpk_last_error(void)
    {
        return last_error.data();
    }

    wpk_status wpk_open(const char* path, wpk_engine** out)
    {
        return guarded(
            [&]
            {
                require_pointer(out, "where the engine goes");
                *out = nullptr;
                require_pointer(path, "the path");
                *out = std::make_unique<wpk_engine>(path).release();
            });
    }

    wpk_status wpk_close(wpk_engine* engine)
    {
        if (engine == nullptr)
        {
            return WPK_OK;
        }
        const wpk_status status = on_engine(engine, [](wpk::Engine& of) { of.wait(); });
        delete engine;
        return status;
    }

    wpk_status wpk_count(const wpk_engine* engine, wpk_direction direction, size_t* count)
    {
        return get(engine, count, [&](const wpk::Engine& of) { return ports_of(of, direction).size(); });
    }

    wpk_status wpk_name(const wpk_engine* engine, wpk_direction direction, size_t number, const char** name)
    {
        return get(engine, name, [&](const wpk::Engine& of) { return value_at(of, direction, number).name.c_str(); });
    }

    wpk_status wpk_element_type(const wpk_engine* engine, wpk_direction direction, size_t number, wpk_type* type)
    {
        return get(engine, type, [&](const wpk::Engine& of) { return value_at(of, direction, number).type; });
    }

    wpk_status wpk_rank(const wpk_engine* engine, wpk_direction direction, size_t number, size_t* rank)
    {
        return get(engine, rank, [&](const wpk::Engine& of) { return port_at(of, direction, number).shape.size(); });
    }

    wpk_status wpk_shape(const wpk_engine* engine, wpk_direction direction, size_t number, int64_t* shape)
    {
        return on_engine(engine,
            [&](const wpk::Engine& of)
            {
                const std::vector<std::int64_t> sizes = wpk::shape_of(port_at(of, direction, number), of.dims());
                if (!sizes.empty())
                {
                    require_pointer(shape, "where the answer goes");
                    std::memcpy(shape, sizes.data(), sizes.size() * sizeof *shape);
                }
            });
    }

    wpk_status wpk_bytes(const wpk_engine* engine, wpk_direction direction, size_t number, uint64_t* bytes)
    {
        return get(engine, bytes,
            [&](const wpk::Engine& of) { return wpk::bytes_of(of.plan(), port_at(of, direction, number), of.dims()); });
    }

    wpk_status wpk_dimension_count(const wpk_engine* engine, size_t* count)
    {
        return get(engine, count, [](const wpk::Engine& of) { return of.plan().dimensions.size(); });
    }

    wpk_status wpk_dimension_name(const wpk_engine* engine, size_t number, const char** name)
    {
        return get(engine, name,
            [&](const wpk::Engine& of) { return at(of.plan().dimensions, number, "free dimension").name.c_str(); });
    }

    wpk_status wpk_dimension_tuned(const wpk_engine* engine, size_t number, int64_t* size)
    {
        return get(engine, size,
            [&](const wpk::Engine& of) { return at(of.plan().dimensions, number, "free dimension").tuned; });
    }

    wpk_status wpk_dimension_size(const wpk_engine* engine, size_t number, int64_t* size)
    {
        return get(engine, size, [&](const wpk::Engine& of) { return at(of.dims(), number, "free dimension"); });
    }

    wpk_status wpk_set_dimension(wpk_engine* engine, const char* name, int64_t size)
    {
        return on_engine(engine,
            [&](wpk::Engine& of)
            {
                require_pointer(name, "the name");
                of.set_dimension(name, size);
            });
    }

    wpk_status wpk_bind(wpk_engine* engine, const char* name, uint64_t address)
    {
        return on_engine(engine,
            [&](wpk::Engine& of)
            {
                require_pointer(name, "the name");
                of.bind_port(find_port(of.plan(), name), address);
            });
    }

    wpk_status wpk_bind_number(wpk_engine* engine, wpk_direction direction, size_t number, uint64_t address)
    {
        return on_engine(engine,
            [&](wpk::Engine& of)
            {
                port_at(of, direction, number);
                of.bind_port(direction == WPK_INPUT ? number : of.plan().inputs.size() + number, address);
            });
    }

    wpk_status wpk_capture(wpk_engine* engine)
    {
        return on_engine(engine, [](wpk::Engine& of) { of.capture(); });
    }

    wpk_status wpk_run(wpk_engine* engine, struct CUstream_st* stream)
    {
        return on_engine(engine, [&](wpk::Engine& of) { of.run(stream); });
    }

} // extern "C"
