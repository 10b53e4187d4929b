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
#pragma once

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plugins/tests/recording_cuda/objects.hpp"

namespace recording
{

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

inline Record record;

// Numbers behind a word of a line.
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

} // namespace recording

#define WPK_CALL(text)                 \
    if (recording::record.fails(text)) \
    {                                  \
        return recording::unknown;     \
    }
