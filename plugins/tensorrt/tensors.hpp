// TensorRT's words for the tensors of a spec.
#pragma once

#include <NvInferRuntime.h>

#include "plugins/core/spec.hpp"

namespace wpk
{

nvinfer1::DataType type_of(ElementType type) noexcept;

nvinfer1::TensorFormat format_of(Format format) noexcept;

// Whether a tensor may have a format: TensorRT promises nothing of padded lanes, so that channels must fill its
// vectors.
bool fills_vectors(const Tensor& tensor, Format format) noexcept;

// Sizes of the free dimensions, read off the inputs. Throws Error(invalid_argument) where an input has another rank or
// an extent that is not what the spec says, or an extent is unknown.
Dims dims_of(const OperatorSpec& spec, const std::vector<const nvinfer1::Dims*>& inputs);

// An expression over the inputs' extents, as TensorRT computes it; null where TensorRT makes none.
const nvinfer1::IDimensionExpr* expression_of(const Expression& expression, const OperatorSpec& spec,
    const nvinfer1::DimsExprs* inputs, nvinfer1::IExprBuilder& builder);

} // namespace wpk
