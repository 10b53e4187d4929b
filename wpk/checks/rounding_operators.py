"""How operators round: which of them sum, which only move numbers, and which are exact relative to 1 only."""

SUMS = frozenset(
    (
        "Attention", "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "CumSum", "Einsum",
        "Gemm", "GlobalAveragePool", "GroupNormalization", "InstanceNormalization", "LRN",
        "LayerNormalization", "LogSoftmax", "LpNormalization", "MatMul", "MeanVarianceNormalization",
        "RMSNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean",
        "ReduceProd", "ReduceSum", "ReduceSumSquare", "Resize", "Softmax", "Upsample",
    )
)  # fmt: skip
"""Their errors are relative to what is summed, not to the sum: disturbing what goes in shows them."""

EXACT = frozenset(
    (
        "Abs", "And", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant",
        "ConstantOfShape", "DepthToSpace", "Dropout", "Equal", "Expand", "Flatten", "Floor", "Gather",
        "GatherElements", "GatherND", "GlobalMaxPool", "Greater", "GreaterOrEqual", "Identity", "If",
        "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool", "Min", "Neg", "NonZero", "Not",
        "OneHot", "Or", "Pad", "Range", "ReduceMax", "ReduceMin", "Relu", "Reshape", "Round", "Scatter",
        "ScatterElements", "ScatterND", "Shape", "Sign", "Size", "Slice", "SpaceToDepth", "Split",
        "Squeeze", "Tile", "TopK", "Transpose", "Trilu", "Unsqueeze", "Where", "Xor",
    )
)  # fmt: skip
"""They move or select numbers and round nothing in the type that these have."""

AROUND_ONE = frozenset(
    (
        "Celu", "Cos", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LogSoftmax", "Mish", "Selu",
        "Sigmoid", "Sin", "Softplus", "Swish", "Tanh", "ThresholdedRelu",
    )
)  # fmt: skip
"""Written with 1 + f(x) or tanh: right to an absolute roundoff."""

SHAPES = frozenset(("Shape", "Size"))
"""They read no element."""

PARAMETERS = {"Range": 0, "Resize": 1, "Upsample": 1}
"""The input from which on floating point numbers are parameters that say how an operator computes."""
