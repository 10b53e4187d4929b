"""Operators as TensorRT's quick plugins, compiled ahead of time: an engine that holds them needs no plugin library."""

from wpk.tensorrt.quick.fitness import why_not
from wpk.tensorrt.quick.quick_operator import QuickOperator, quick_operator
from wpk.tensorrt.quick.registering import register
