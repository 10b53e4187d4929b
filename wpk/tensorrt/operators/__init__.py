"""Operators as TensorRT plugins: each cut out of the model, in TensorRT's formats, and what computes it as a spec."""

from wpk.tensorrt.operators.forms import Form, forms_of
from wpk.tensorrt.operators.operator_model import operator_model
from wpk.tensorrt.operators.plugin_operator import Built, Packed, PluginOperator, plugin_operator
