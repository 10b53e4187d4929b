// prepare_calls: reads operators as print_specs does, and makes the calls of their variants ready together, by a
// library of the test's that counts what it is asked for. Answers each call with a line: the number of its
// implementation and whose version it is, or why there is none.
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plugins/core/error.hpp"
#include "plugins/libraries/libraries.hpp"

namespace
{

using namespace wpk;

class Counted final : public ReadyCall
{
public:
    std::uint64_t workspace_bytes() const noexcept override
    {
        return 64;
    }

    void put_on(CUstream, const Addresses&) override {}
};

class Counting final : public Library
{
public:
    std::unique_ptr<ReadyCall> prepare(const LibraryCall&) override
    {
        return std::make_unique<Counted>();
    }
};

class Prepared
{
public:
    void tell(const LibraryCall& call)
    {
        try
        {
            const std::shared_ptr<ReadyCall> ready = libraries_.prepare(call);
            const auto number = numbers_.emplace(ready, numbers_.size()).first->second;
            std::printf("implementation %zu, libraries %d\n", number, opened_);
        }
        catch (const Error& error)
        {
            std::printf("%s\n", error.what());
        }
    }

private:
    int opened_ = 0;
    std::map<std::shared_ptr<ReadyCall>, std::size_t> numbers_; // which keeps all of them
    Libraries libraries_{[this](const std::string&)
        {
            ++opened_;
            return std::make_unique<Counting>();
        }};
};

} // namespace

int main()
{
    Prepared prepared;
    std::uint32_t size = 0;
    while (std::fread(&size, sizeof size, 1, stdin) == 1)
    {
        std::vector<std::byte> data(size);
        if (std::fread(data.data(), 1, size, stdin) != size)
        {
            return 1;
        }
        for (const Variant& variant : read_operator(data.data(), data.size()).variants)
        {
            prepared.tell(std::get<LibraryCall>(variant.work));
        }
    }
    return 0;
}
