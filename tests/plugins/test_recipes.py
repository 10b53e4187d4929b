"""Recipes of cuDNN as C++ reads them: what Python describes, or refused with a reason."""

from __future__ import annotations

import random
import struct
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from subjects.problems import convolution
from support.plugins import answers
from support.problems.described import problems

from wpk.dtypes import DType
from wpk.libraries import find_library
from wpk.libraries.cudnn_description import (
    AttentionNode,
    ConvolutionNode,
    Description,
    GraphTensor,
    MatmulNode,
    Node,
    NormNode,
    ReductionNode,
    SoftmaxNode,
)
from wpk.libraries.cudnn_pointwise import PointwiseCall, PointwiseTensor
from wpk.libraries.cudnn_problems import describe
from wpk.libraries.cudnn_recipe import recipe_of as bytes_of
from wpk.problems import Problem
from wpk.spec import (
    Format,
    LibraryCall,
    OperatorSpec,
    SpecTensor,
    Variant,
    element_code,
    operator_bytes,
)

KNOBS = (("TILE_SIZE", 2), ("EDGE", -1))
INPUTS = 6
FP16 = DType.FP16


def calls_of(*calls: LibraryCall) -> bytes:
    """An operator with a variant for each call."""
    tensor = SpecTensor(FP16, (8,))
    variants = tuple(
        Variant(f"variant {number}", (Format.LINEAR,) * (INPUTS + 1), call)
        for number, call in enumerate(calls)
    )
    return operator_bytes(OperatorSpec("fused", (), (tensor,) * INPUTS, (tensor,), (), variants))


def spec_of(recipe: bytes) -> bytes:
    """An operator that a library computes; its sizes are nobody's here."""
    return calls_of(LibraryCall("cuDNN", "9.19.0", 4096, (0, 2, 1), recipe))


def recipe_of(problem: Problem, graph: int) -> bytes:
    return find_library("cuDNN").recipe(problem, (("graph", graph), ("engine", 17), *KNOBS))


def said_tensor(tensor: GraphTensor) -> list[Any]:
    return [element_code(tensor.dtype), list(tensor.dims), list(tensor.strides)]


def said_steps(steps: tuple[PointwiseCall, ...]) -> list[Any]:
    def argument(each: PointwiseTensor | float) -> list[int] | float:
        return [each.index] if isinstance(each, PointwiseTensor) else each

    return [
        [step.method, list(map(argument, step.arguments)), [list(each) for each in step.options]]
        for step in steps
    ]


def said_node(node: Node) -> list[Any]:
    match node:
        case ConvolutionNode(before, after, stride, dilation, backward):
            return [0, *map(list, (before, after, stride, dilation)), int(backward)]
        case MatmulNode():
            return [1]
        case NormNode(method, epsilon, shifted):
            return [2, method, epsilon, int(shifted)]
        case AttentionNode(scale, biased, scores):
            return [3, scale, int(biased), said_steps(scores)]
        case SoftmaxNode(log):
            return [4, int(log)]
        case ReductionNode(mode, steps):
            return [5, mode, said_steps(steps)]
        case _:
            return [6]


def said(description: Description) -> list[Any]:
    return [
        17,
        [list(knob) for knob in sorted(KNOBS)],
        int(description.strict),
        list(map(said_tensor, description.inputs)),
        said_tensor(description.output),
        description.operands,
        said_node(description.node),
        said_steps(description.steps),
    ]


def test_what_python_describes_is_what_is_read(print_specs: Path) -> None:
    described = [
        (name, problem, number, description)
        for name, problem in problems().items()
        for number, description in enumerate(describe(problem))
    ]
    kinds = {type(description.node) for *_, description in described}
    assert len(kinds) == len(Node.__args__)
    specs = [spec_of(recipe_of(problem, number)) for _, problem, number, _ in described]
    for (name, _, _, description), seen in zip(described, answers(print_specs, specs), strict=True):
        ((_, _, work),) = seen["variants"]
        assert work["library"] == ["cuDNN", "9.19.0"]
        assert (work["workspace"], work["inputs"]) == (4096, [0, 2, 1])
        assert work["recipe"] == said(description), name


def test_every_truncation_is_refused(print_specs: Path) -> None:
    recipe = recipe_of(convolution(8, 16, (10, 9), n=2, bias=FP16), 0)
    seen = answers(print_specs, [spec_of(recipe[:size]) for size in range(len(recipe))])
    assert all("; fix: " in each["error"] for each in seen)
    (longer,) = answers(print_specs, [spec_of(recipe + b"\0")])
    assert "1 bytes behind its end" in longer["error"]


def test_a_changed_byte_is_never_fatal(print_specs: Path) -> None:
    draw = random.Random(0)
    changed = []
    for problem in problems().values():
        recipe = recipe_of(problem, 0)
        for _ in range(40):
            at = draw.randrange(len(recipe))
            value = draw.choice([0, 1, 0x7F, 0x80, 0xFF, recipe[at] ^ 1 << draw.randrange(8)])
            changed.append(spec_of(recipe[:at] + bytes([value]) + recipe[at + 1 :]))
    seen = answers(print_specs, changed)
    refused = [each for each in seen if "error" in each]
    assert len(refused) > len(changed) / 5
    assert all("; fix: " in each["error"] and each["code"] == 1 for each in refused)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"operands": 9}, "9 operands among"),
        ({"operands": 0}, "a recipe's node with 3 inputs, it takes 2"),
        ({"steps": (PointwiseCall("relu", (PointwiseTensor(2),)),)}, "names value 2 of 2"),
    ],
)
def test_a_recipe_that_does_not_add_up_is_refused(
    print_specs: Path, change: dict[str, Any], reason: str
) -> None:
    (description,) = describe(convolution(8, 16, (10, 9), n=2, bias=FP16))
    wrong = bytes_of(replace(description, **change), (("graph", 0), ("engine", 1)))
    (seen,) = answers(print_specs, [spec_of(wrong)])
    assert reason in seen["error"]


def test_equal_calls_share_an_implementation(sanitized: Path) -> None:
    """As in Python: what is compiled once is once in the GPU's caches."""
    call = LibraryCall("cuDNN", "9.19.0", 4096, (0, 2, 1), b"recipe")
    others = [
        replace(call, version="9.20.0"),
        replace(call, workspace_bytes=64),
        replace(call, inputs=(0, 1, 2)),
        replace(call, recipe=b"another"),
    ]
    refused = [replace(call, workspace_bytes=63), replace(call, library="cuBLAS")]
    stream = [calls_of(call, *others, call), calls_of(*reversed(others), call, *refused)]
    done = subprocess.run(
        [sanitized / "plugins" / "tests" / "prepare_calls"],
        input=b"".join(struct.pack("<I", len(spec)) + spec for spec in stream),
        capture_output=True,
        check=True,
        timeout=60,
    )
    lines = done.stdout.decode().splitlines()
    found = [line.removesuffix(", libraries 2").split() for line in lines[1:-2]]
    assert lines[0] == "implementation 0, libraries 1"
    numbers = [number for word, number in found if word == "implementation"]
    assert numbers == ["1", "2", "3", "4", "0", "4", "3", "2", "1", "0"]
    assert "asks for 64 bytes of scratch memory, 63 were measured; fix: " in lines[-2]
    assert "of libraries only cuDNN is called here; fix: " in lines[-1]
