"""Graph passes with a fault: another piece of code in the place of one in the source of their module.

    with planted(fault):
        wpk.optimize(fault.write_model(folder), plan, target="h200")  # must not write a plan

The kit is in the modules beside this one, by family; every pass of `wpk.graph_passes.catalogue` is broken there.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import onnx
import pytest
from subjects.exported import model_names, refill

from support.faults.planter import rewrite
from support.networks.drawn_weights import parse_model
from wpk.dtypes import Precision

_PACKAGE = "wpk.graph_passes"


@dataclass(frozen=True)
class BrokenPass:
    """One fault, and a model on which it changes an output.

    Attributes:
        name: What is wrong, in words.
        breaks: The pass whose rewrite is wrong.
        module: Where its code is, in ``wpk.graph_passes``.
        old: Code that is there once in that module, whatever its layout.
        new: What replaces it.
        model: ONNX text, or a network's name in ``exported.zip``.
        constants: Inputs of the text that become weights (`drawn_weights`).
        precision: What the model is optimized for.
    """

    name: str
    breaks: str
    module: str
    old: str
    new: str
    model: str
    constants: str = ""
    precision: Precision = Precision.FP32

    @property
    def is_network(self) -> bool:
        """Whether the model is a real network, which takes minutes to check."""
        return self.model in model_names()

    def write_model(self, folder: Path) -> Path:
        """Write the model to a file in ``folder``."""
        path = folder / "model.onnx"
        text = self.model
        onnx.save(refill(text) if self.is_network else parse_model(text, self.constants), path)
        return path


@contextmanager
def planted(fault: BrokenPass) -> Iterator[None]:
    """Give the functions and constants of the fault's module the code that its new text has.

    Functions are changed in place, so that whoever imported them runs the fault, too.
    """
    module = import_module(f"{_PACKAGE}.{fault.module}")
    right = inspect.getsource(module)
    wrong = rewrite(fault.old, fault.new)(right)
    namespace: dict[str, Any] = {"__name__": module.__name__}
    exec(_compiled(wrong, str(module.__file__)), namespace)
    with pytest.MonkeyPatch.context() as patch:
        wrong_functions = _functions(namespace, module.__name__)
        for name, function in _functions(vars(module), module.__name__).items():
            patch.setattr(function, "__code__", wrong_functions[name].__code__)
        for name in _changed_constants(right, wrong):
            for importer in _importers(name, vars(module)[name]):
                patch.setattr(importer, name, namespace[name])
        yield


@cache
def _compiled(text: str, file: str) -> CodeType:
    return compile(text, file, "exec")


def _functions(namespace: dict[str, Any], module: str) -> dict[str, FunctionType]:
    """The functions that a module defines, in its classes and tables, too, by where they are."""
    found: dict[str, FunctionType] = {}
    for name, value in namespace.items():
        holders = {name: value}
        if inspect.isclass(value) and value.__module__ == module:
            holders = {f"{name}.{key}": inner for key, inner in vars(value).items()}
        elif isinstance(value, dict) and name != "__builtins__":
            holders = {f"{name}[{key}]": inner for key, inner in value.items()}
        for place, holder in holders.items():
            function = holder.fget if isinstance(holder, property) else holder
            if isinstance(function, FunctionType) and function.__module__ == module:
                found[place] = function
    return found


def _changed_constants(right: str, wrong: str) -> list[str]:
    """Names that the module's own level assigns otherwise; tables of functions are not among them."""
    before, after = _assigned(right), _assigned(wrong)
    return [name for name, value in after.items() if before[name] != value]


@cache
def _assigned(text: str) -> dict[str, str]:
    return {
        target.id: ast.dump(node.value)
        for node in ast.parse(text).body
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }


def _importers(name: str, value: object) -> list[ModuleType]:
    """The modules of passes in which ``name`` is this very object."""
    modules = [m for key, m in sys.modules.items() if key.startswith(_PACKAGE)]
    return [m for m in modules if vars(m).get(name) is value]
