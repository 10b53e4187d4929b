// What a plugin is attached to: a context of TensorRT, with a recorder of errors.
#pragma once

#include <cstdint>

#include <NvInferRuntime.h>

namespace wpk_test
{

using namespace nvinfer1;

class Recorder final : public IErrorRecorder
{
public:
    std::int32_t getNbErrors() const noexcept override
    {
        return count_;
    }
    ErrorCode getErrorCode(std::int32_t) const noexcept override
    {
        return ErrorCode::kINTERNAL_ERROR;
    }
    ErrorDesc getErrorDesc(std::int32_t) const noexcept override
    {
        return "";
    }
    bool hasOverflowed() const noexcept override
    {
        return false;
    }
    void clear() noexcept override
    {
        count_ = 0;
    }
    bool reportError(ErrorCode, ErrorDesc) noexcept override
    {
        ++count_;
        return true;
    }
    RefCount incRefCount() noexcept override
    {
        return 1;
    }
    RefCount decRefCount() noexcept override
    {
        return 1;
    }

private:
    std::int32_t count_ = 0;
};

class Context final : public IPluginResourceContext
{
public:
    IGpuAllocator* getGpuAllocator() const noexcept override
    {
        return nullptr;
    }
    IErrorRecorder* getErrorRecorder() const noexcept override
    {
        return &recorder;
    }

    mutable Recorder recorder;
};

} // namespace wpk_test
