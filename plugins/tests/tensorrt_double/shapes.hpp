// TensorRT's arithmetic on the extents of shapes, all of them known.
#pragma once

#include <cstdint>
#include <deque>

#include <NvInferRuntime.h>

#include "plugins/tests/allocations.hpp"

namespace wpk_test
{

using namespace nvinfer1;

class Extent final : public apiv::VDimensionExpr, public IDimensionExpr
{
public:
    explicit Extent(std::int64_t value) : value_(value)
    {
        mImpl = this;
    }
    bool isConstant() const override
    {
        return true;
    }
    std::int64_t getConstantValue() const override
    {
        return value_;
    }
    bool isSizeTensor() const override
    {
        return false;
    }

private:
    std::int64_t value_;
};

class Builder final : public apiv::VExprBuilder, public IExprBuilder
{
public:
    Builder()
    {
        mImpl = this;
    }
    const IDimensionExpr* constant(std::int64_t value) override
    {
        const Undisturbed none;
        made_.emplace_back(value);
        return &made_.back();
    }
    const IDimensionExpr* operation(
        DimensionOperation operation, const IDimensionExpr& first, const IDimensionExpr& second) override
    {
        const std::int64_t a = first.getConstantValue(), b = second.getConstantValue();
        switch (operation)
        {
        case DimensionOperation::kSUM:
            return constant(a + b);
        case DimensionOperation::kPROD:
            return constant(a * b);
        case DimensionOperation::kMAX:
            return constant(a > b ? a : b);
        case DimensionOperation::kMIN:
            return constant(a < b ? a : b);
        case DimensionOperation::kSUB:
            return constant(a - b);
        case DimensionOperation::kEQUAL:
            return constant(a == b);
        case DimensionOperation::kLESS:
            return constant(a < b);
        case DimensionOperation::kFLOOR_DIV:
            return constant(a / b);
        case DimensionOperation::kCEIL_DIV:
            return constant((a + b - 1) / b);
        }
        return nullptr;
    }
    const IDimensionExpr* declareSizeTensor(std::int32_t, const IDimensionExpr&, const IDimensionExpr&) override
    {
        return nullptr;
    }
    IExprBuilder& itself()
    {
        return *this;
    }

private:
    std::deque<Extent> made_;
};

} // namespace wpk_test
