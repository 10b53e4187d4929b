"""Vendors' implementations of problems: what they are, how their operands lie in memory, and calling them."""

from wpk.libraries.constant_layouts import lay_out
from wpk.libraries.cuda_libraries import CudaLibraries
from wpk.libraries.cudnn_description import CUDNN
from wpk.libraries.library import ALIGNMENT
from wpk.libraries.numpy_libraries import NumpyLibraries
from wpk.libraries.offer import LibraryOffer, constant_shape, constant_tensor
from wpk.libraries.reference import random_case, why_unknown
from wpk.libraries.registry import LIBRARIES, askable, asked_libraries, find_library
