"""A quick plugin, registered with TensorRT: the functions that its decorators ask for, made for any number of tensors."""

from collections.abc import Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, Union

from wpk.dims import DimExpr, DimNode, DimOperation
from wpk.nvinfer import Binding, element_type_name
from wpk.spec import Variant
from wpk.tensorrt.quick.quick_operator import NAMESPACE, QuickOperator

_TYPE_TEXTS = {"FLOAT": "FP32", "HALF": "FP16"}
"""Element types that tensorrt.plugin writes otherwise than the enum does."""


def register(binding: Binding, plugin_module: Any, operator: QuickOperator) -> Any:
    """Register a quick plugin, for the rest of the process.

    Args:
        binding: TensorRT.
        plugin_module: Its ``tensorrt.plugin``, of 10.9 or newer.
        operator: The plugin.

    Returns:
        What makes a layer of it: ``network.add_plugin(returned(*tensors), aot=True)``.
    """
    forms = _Forms(binding.module, plugin_module, operator)
    identity = f"{NAMESPACE}::{operator.name}"
    # Lazily: attributes are what eager registration reads off, and there are none.
    registered = plugin_module.register(identity, lazy_register=True)(forms.shapes())
    plugin_module.autotune(identity)(forms.formats())
    plugin_module.aot_impl(identity)(forms.launch())
    return registered


class _Forms:
    """The three functions, with the signatures that TensorRT reads."""

    def __init__(self, module: Any, plugin_module: Any, operator: QuickOperator) -> None:
        self._module, self._plugin, self._operator = module, plugin_module, operator
        described: Any = plugin_module.TensorDesc
        self._inputs = [
            Parameter(f"x{number}", Parameter.POSITIONAL_OR_KEYWORD, annotation=described)
            for number in range(len(operator.spec.inputs))
        ]
        together: Any = tuple
        outputs = together[(described,) * len(operator.spec.outputs)]
        self._outputs = Parameter("outputs", Parameter.POSITIONAL_OR_KEYWORD, annotation=outputs)
        self._tactic = Parameter("tactic", Parameter.POSITIONAL_OR_KEYWORD, annotation=int)

    def shapes(self) -> Any:
        """From descriptions of inputs to those of outputs."""
        outputs = self._operator.spec.outputs

        def shapes(*inputs: Any) -> Any:
            dims = self._dims(inputs)
            described = [
                self._plugin.from_shape_expr(
                    tuple(self._value(extent, dims) for extent in each.shape),
                    getattr(self._module.DataType, element_type_name(each.dtype)),
                )
                for each in outputs
            ]
            return described[0] if len(described) == 1 else tuple(described)

        described = self._plugin.TensorDesc
        one = len(outputs) == 1
        returned = described if one else self._outputs.annotation
        return _with_signature(shapes, self._inputs, returned)

    def formats(self) -> Any:
        """The types and formats that the kernel is for."""
        spec = self._operator.spec
        (variant, *_) = spec.variants
        names = [element_type_name(each.dtype) for each in (*spec.inputs, *spec.outputs)]
        types = ", ".join(_TYPE_TEXTS.get(name, name) for name in names)

        def formats(*described: Any) -> Any:
            return [self._plugin.AutoTuneCombination(types, _layouts(variant), [1])]

        several: Any = list
        returned = several[self._plugin.AutoTuneCombination]
        return _with_signature(formats, [*self._inputs, self._outputs], returned)

    def launch(self) -> Any:
        """The kernel, its grid and its numbers."""
        operator, plugin = self._operator, self._plugin
        (launch,) = operator.spec.variants[0].launches

        def launch_kernel(*described: Any) -> Any:
            dims = self._dims(described[: len(self._inputs)])
            x, y, z = (self._value(each, dims) for each in launch.grid)
            parameters = plugin.KernelLaunchParams(x, y, z, *launch.block, launch.shared_bytes)
            numbers = plugin.SymIntExprs(len(operator.numbers))
            for place, number in enumerate(operator.numbers):
                # Plain numbers would become expressions of no width, which TensorRT refuses.
                numbers[place] = plugin.SymInt32(self._value(number, dims))
            return operator.entry, operator.ptx, parameters, numbers

        text = Union[str, bytes]  # noqa: UP007  # the form that 10.9 reads
        together: Any = tuple
        returned = together[text, text, plugin.KernelLaunchParams, plugin.SymIntExprs]
        return _with_signature(
            launch_kernel, [*self._inputs, self._outputs, self._tactic], returned
        )

    def _dims(self, inputs: Sequence[Any]) -> Mapping[str, Any]:
        return {
            each.name: inputs[each.input].shape_expr[each.axis]
            for each in self._operator.spec.dimensions
        }

    def _value(self, expression: DimExpr, dims: Mapping[str, Any]) -> Any:
        """An expression in TensorRT's symbols; numbers alone stay numbers."""
        if isinstance(expression, int):
            return expression
        if isinstance(expression, str):
            return dims[expression]
        left, right = self._value(expression.left, dims), self._value(expression.right, dims)
        if isinstance(left, int):
            left = self._plugin.ShapeExpr(left)
        return self._apply(expression, left, right)

    def _apply(self, node: DimNode, left: Any, right: Any) -> Any:
        match node.operation:
            case DimOperation.SUM:
                return left + right
            case DimOperation.PROD:
                return left * right
            case DimOperation.SUB:
                return left - right
            case DimOperation.FLOOR_DIV:
                return left // right
            case DimOperation.EQUAL:
                return left == right
            case DimOperation.LESS:
                return left < right
            case DimOperation.CEIL_DIV:
                return self._plugin.cdiv(left, right)
            case DimOperation.MAX:
                return self._plugin.max(left, right)
            case DimOperation.MIN:
                return self._plugin.min(left, right)


def _layouts(variant: Variant) -> str:
    return ", ".join(form.name for form in variant.formats)


def _with_signature(function: Any, parameters: Sequence[Parameter], returned: Any) -> Any:
    function.__signature__ = Signature(parameters, return_annotation=returned)
    return function
