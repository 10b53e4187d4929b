"""Every operation of the expression IR has a struct of its name in expression.cuh, for both compilers."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wpk.build import load_nvrtc
from wpk.dtypes import DType
from wpk.expression import Acc, Apply, In, Operand, Round, Scalar, cpp_type
from wpk.expression_operations import OPERATIONS
from wpk.kernel_source import KernelSource

_LEAVES = (Acc(), Operand(0), Scalar(0.1))

_OF_FLOATS = [name for name in OPERATIONS if not name.startswith(("Bit", "Shift"))]
_OF_INTEGERS = (
    *(
        "Add",
        "Sub",
        "Mul",
        "Div",
        "Max",
        "Min",
        "Pow",
        "Mod",
        "FloorMod",
        "Neg",
        "Abs",
        "Sign",
        "Relu",
    ),
    *("IsNan", "Not", "Less", "LessOrEqual", "Equal", "And", "Or", "Where"),
    *(name for name in OPERATIONS if name not in _OF_FLOATS),
)


def _all_operations() -> KernelSource:
    in_floats = [Apply(n, _LEAVES[: OPERATIONS[n].arity]) for n in _OF_FLOATS]
    rounded = [Round(dtype, Acc()) for dtype in DType if dtype is not DType.FP64]
    in_integers = [
        In(dtype, Round(DType.INT8, Apply(n, _LEAVES[: OPERATIONS[n].arity])))
        for n in _OF_INTEGERS
        for dtype in (DType.INT64, DType.UINT64)
    ]
    in_doubles = [
        In(DType.FP64, each)
        for each in (*in_floats, *(Round(dtype, Operand(0)) for dtype in DType))
    ]
    doubles = "\n".join(
        f"  d[{i}] = {cpp_type(e)}::evaluate(d[0], numbers);" for i, e in enumerate(in_doubles)
    )
    lines = "\n".join(
        f"  y[{i}] = {cpp_type(e)}::evaluate(x[0], operands);"
        for i, e in enumerate([*in_floats, *rounded])
    )
    whole = "\n".join(
        f"  z[{i}] = {cpp_type(e)}::evaluate({e.dtype.c_name}(z[1]), integers);"
        for i, e in enumerate(in_integers)
    )
    text = (
        "#include <wpk/kernels/numbers/expression.cuh>\n"
        "WPK_KERNEL(32) wpk_all(const float* x, float* y, wpk::int64* z, double* d) {\n"
        f"  const float operands[1] = {{x[1]}};\n{lines}\n"
        f"  const wpk::int64 integers[1] = {{z[0]}};\n{whole}\n"
        f"  const double numbers[1] = {{d[1]}};\n{doubles}\n}}\nWPK_EXPORT(wpk_all)\n"
    )
    return KernelSource("wpk_all", text)


def test_every_operation_compiles_with_nvrtc() -> None:
    kernel = load_nvrtc().compile(_all_operations(), "sm_90a")
    assert not kernel.resources.spills


def test_every_operation_compiles_with_the_host_compiler(tmp_path: Path) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("no host C++ compiler")
    unit = tmp_path / "all.cpp"
    unit.write_text(_all_operations().text)
    root = Path(__file__).parents[2]
    subprocess.run(
        [compiler, "-std=c++20", "-fsyntax-only", f"-I{root}", str(unit)], check=True, timeout=60
    )


def test_the_header_has_no_operation_that_python_lacks() -> None:
    header = (Path(__file__).parents[2] / "wpk/kernels/numbers/expression.cuh").read_text()
    named = set(re.findall(r"^WPK_(?:UNARY|BINARY)_OPERATION\((\w+),", header, re.MULTILINE))
    assert named | {"Where"} == set(OPERATIONS)
