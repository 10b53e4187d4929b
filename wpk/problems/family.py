"""Families of problems, and of the ONNX operators that become them."""

from enum import StrEnum


class Family(StrEnum):
    """What problems are counted and coloured as, in the order of reports."""

    CONVOLUTION = "convolution"
    DEPTHWISE = "depthwise"
    MATRIX_PRODUCT = "matrix product"
    ATTENTION = "attention"
    RECURRENCE = "recurrence"
    POOLING = "pooling"
    REDUCTION = "reduction"
    NORMALISATION = "normalisation"
    ELEMENT_WISE = "element-wise"
    MOVEMENT = "movement"
    FALLBACK = "onnxruntime"
