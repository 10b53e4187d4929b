"""Specs: launches as bytes that C++ reads, in the format of docs/spec_format.md."""

from wpk.spec.elements import element_code
from wpk.spec.library_call import LibraryCall
from wpk.spec.operator import (
    Dimension,
    Format,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
    operator_bytes,
    operator_id,
)
from wpk.spec.sealed import SpecKind, sealed
from wpk.spec.writer import Names, SpecWriter
