"""Rows of products, pools, normalisations and reductions, and of others that sum."""

import math

from wpk.operators.row import ErrorRule, Magnitude, OperatorKind, Roundoff, Row

_PRODUCT, _POOL, _REDUCTION, _OTHER = (
    OperatorKind.PRODUCT,
    OperatorKind.POOL,
    OperatorKind.REDUCTION,
    OperatorKind.OTHER,
)
_ROW, _SOFTMAX = OperatorKind.NORMALISATION, OperatorKind.SOFTMAX
_RECURRENT = OperatorKind.RECURRENT
_NONE, _TERMS = Roundoff.NONE, Roundoff.TERMS
_FIRST, _MEAN = Magnitude.FIRST, Magnitude.MEAN
_NEGATIVE, _POSITIVE = (-math.inf, 0.0), (0.0, math.inf)

# name, kind, formula, error, roundoff, magnitude
ROWS = (
    Row("Conv", _PRODUCT, None, ErrorRule.PRODUCTS, _TERMS),
    Row("ConvTranspose", _PRODUCT, None, ErrorRule.PRODUCTS, _TERMS),
    Row("Gemm", _PRODUCT, None, ErrorRule.PRODUCTS, _TERMS, Magnitude.PRODUCTS),
    Row("MatMul", _PRODUCT, None, ErrorRule.PRODUCTS, _TERMS, Magnitude.PRODUCTS),
    Row("AveragePool", _POOL, None, ErrorRule.AVERAGE_POOL, _TERMS),
    Row("MaxPool", _POOL, None, ErrorRule.LARGEST, _NONE, _FIRST),
    Row("GlobalAveragePool", _POOL, None, ErrorRule.MEAN, _TERMS, _MEAN, is_sensitive=True),
    Row("GlobalMaxPool", _POOL, None, ErrorRule.LARGEST, _NONE, _FIRST),
    Row("RoiAlign", _POOL, None, ErrorRule.REGIONS, _TERMS, is_sensitive=True),
    Row("Softmax", _SOFTMAX, None, ErrorRule.SOFTMAX, _TERMS, between=(0.0, 1.0), is_sensitive=True),
    Row("LogSoftmax", _SOFTMAX, None, ErrorRule.LOG_SOFTMAX, _TERMS | Roundoff.ONE, between=_NEGATIVE, is_sensitive=True),
    Row("InstanceNormalization", _ROW, None, ErrorRule.NORMALISED, _TERMS, is_sensitive=True),
    Row("LayerNormalization", _ROW, None, ErrorRule.NORMALISED, _TERMS, Magnitude.LAYER_NORM, is_sensitive=True),
    Row("RMSNormalization", _ROW, None, ErrorRule.NORMALISED, _TERMS, is_sensitive=True),
    Row("ReduceMax", _REDUCTION, None, ErrorRule.LARGEST, _NONE, _FIRST),
    Row("ReduceMin", _REDUCTION, None, ErrorRule.LARGEST, _NONE, _FIRST),
    Row("ReduceSum", _REDUCTION, None, ErrorRule.MEAN, _TERMS, is_sensitive=True),
    Row("ReduceMean", _REDUCTION, None, ErrorRule.MEAN, _TERMS, _MEAN, is_sensitive=True),
    Row("ReduceProd", _REDUCTION, None, ErrorRule.FACTORS, _TERMS, is_sensitive=True),
    Row("ReduceL1", _REDUCTION, None, ErrorRule.MEAN, _TERMS, between=_POSITIVE, is_sensitive=True),
    Row("ReduceL2", _REDUCTION, None, ErrorRule.SQUARES, _TERMS, between=_POSITIVE, is_sensitive=True),
    Row("ReduceSumSquare", _REDUCTION, None, ErrorRule.SQUARES, _TERMS, between=_POSITIVE, is_sensitive=True),
    Row("ReduceLogSum", _REDUCTION, None, ErrorRule.LOG_SUM, _TERMS, is_sensitive=True),
    Row("ReduceLogSumExp", _REDUCTION, None, None, _TERMS, is_sensitive=True),
    Row("ArgMax", _OTHER, None, ErrorRule.RANKED, _NONE),
    Row("ArgMin", _OTHER, None, ErrorRule.RANKED, _NONE),
    Row("TopK", _OTHER, None, ErrorRule.RANKED, _NONE, parameters=1),
    Row("Resize", _OTHER, None, ErrorRule.RESAMPLED, _TERMS, parameters=1),
    Row("Upsample", _OTHER, None, ErrorRule.RESAMPLED, _TERMS, parameters=1),
    Row("QuantizeLinear", _OTHER, None, ErrorRule.QUANTISED),
    Row("DynamicQuantizeLinear", _OTHER, None, ErrorRule.DYNAMICALLY_QUANTISED),
    Row("QLinearConv", _OTHER, None, ErrorRule.QUANTISED, _TERMS),
    Row("QLinearMatMul", _OTHER, None, ErrorRule.QUANTISED, _TERMS),
    Row("LSTM", _RECURRENT, None, ErrorRule.RECURRENT, _TERMS),
    Row("GRU", _RECURRENT, None, ErrorRule.RECURRENT, _TERMS),
    Row("RNN", _RECURRENT, None, ErrorRule.RECURRENT, _TERMS),
    Row("Attention", _OTHER, roundoff=_TERMS),
    Row("Einsum", _OTHER, roundoff=_TERMS),
    Row("BatchNormalization", _OTHER, roundoff=_TERMS, is_sensitive=True),
    Row("CumSum", _OTHER, None, ErrorRule.RUNNING_SUM, _TERMS, is_sensitive=True, parameters=1),
    Row("CumProd", _OTHER, None, ErrorRule.RUNNING_PRODUCT, _TERMS, is_sensitive=True, parameters=1),
    Row("Det", _OTHER, None, ErrorRule.DETERMINANT, _TERMS, is_sensitive=True),
    Row("GroupNormalization", _OTHER, roundoff=_TERMS, is_sensitive=True),
    Row("LRN", _OTHER, roundoff=_TERMS, is_sensitive=True),
    Row("LpNormalization", _OTHER, roundoff=_TERMS, is_sensitive=True),
    Row("MeanVarianceNormalization", _OTHER, roundoff=_TERMS, is_sensitive=True),
    Row("GlobalLpPool", _OTHER, is_sensitive=True),
)  # fmt: skip
