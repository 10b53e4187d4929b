"""How much an honest implementation may round: by type, and by operator."""

import ml_dtypes
import numpy as np

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = (np.dtype(np.float32), np.dtype(np.float16), BF16)
ROUNDOFF = {FLOATS[0]: 2.0**-24, FLOATS[1]: 2.0**-11, FLOATS[2]: 2.0**-8}

SMALLEST = {FLOATS[0]: 2.0**-149, FLOATS[1]: 2.0**-24, FLOATS[2]: 2.0**-133}
"""Distance of the numbers next to zero: what underflow rounds by."""

EXACT = (
    "Abs", "And", "Cast", "CastLike", "Ceil", "Clip", "Compress", "Concat", "Constant",
    "ConstantOfShape", "DepthToSpace", "Dropout", "Equal", "Expand", "Flatten", "Floor",
    "Gather", "GatherElements", "GatherND", "GlobalMaxPool", "Greater", "GreaterOrEqual",
    "Identity", "If", "IsInf", "IsNaN", "Less", "LessOrEqual", "Max", "MaxPool", "MaxUnpool", "Min", "Neg",
    "NonZero", "Not", "OneHot", "Or", "Pad", "Range", "ReduceMax", "ReduceMin", "Relu",
    "Reshape", "ReverseSequence", "Round", "Scatter", "ScatterElements", "ScatterND", "Shape", "Sign", "Size",
    "Slice", "SpaceToDepth", "Split", "Squeeze", "Tile", "TopK", "Transpose", "Trilu",
    "Unsqueeze", "Where", "Xor",
)  # fmt: skip
"""These move or select numbers, and round nothing in fp32."""

SUMMING = (
    "Attention", "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "CumSum", "Det",
    "Einsum", "Gemm", "GlobalAveragePool", "GroupNormalization", "InstanceNormalization", "LRN",
    "LayerNormalization", "LogSoftmax", "LpNormalization", "MatMul",
    "MeanVarianceNormalization", "RMSNormalization", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Resize",
    "RoiAlign", "Softmax",
)  # fmt: skip
"""Sums: an error is relative to what is summed, not to the sum. Disturbing what goes in shows it."""

AROUND_ONE = (
    "Acos", "Celu", "Cos", "Elu", "Erf", "Gelu", "HardSigmoid", "HardSwish", "LogSoftmax", "Mish",
    "Selu", "Sigmoid", "Sin", "Softplus", "Swish", "Tanh", "ThresholdedRelu",
)  # fmt: skip
"""Written with 1 + f(x) or tanh: right to an absolute roundoff."""
