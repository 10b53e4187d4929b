"""``plugins/libraries`` executes what cuDNN offers for problems of every kind from its recipe: Python's bits.

The program is CMake's, built with cuDNN; see ``tests/gpu/test_core_operators.py``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from rows.base import RowError
from subjects.c_engine import built
from subjects.core_operator import CoreCase, execute
from support.problems.cudnn_problems import (
    CAPPED,
    attentions,
    elementwise,
    reductions,
    softmaxes,
    with_scores,
)
from support.problems.fused_convolutions import CONVOLUTIONS

from wpk.backends import GpuProcess
from wpk.dtypes import DType, Precision
from wpk.errors import EngineError
from wpk.execution import BoundCall, Bytes, LibraryImage
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.libraries import find_library, lay_out
from wpk.libraries.cudnn_description import PointwiseNode
from wpk.libraries.cudnn_problems import describe
from wpk.libraries.memory import places
from wpk.problems import Epilogue, Matmul, Normalisation, Problem, Tensor
from wpk.problems.normalisation import NormKind
from wpk.spec import (
    Format,
    LibraryCall,
    OperatorSpec,
    SpecTensor,
    Variant,
    operator_bytes,
    operator_id,
)

MOST = 3
"""Implementations of each problem."""

THREADS = 4

RUNS = 3
"""Of Python: what gives other bits each time is not compared."""

POISON = 0xA5

FP16 = DType.FP16

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def built_program() -> None:
    """Nothing is compared where the program was not built."""
    try:
        built("tests", "run_operator")
    except RowError as error:
        pytest.skip(str(error))


@pytest.fixture(name="process", scope="module")
def fixture_process() -> Iterator[GpuProcess]:
    """A child that executes what Python is asked for."""
    with GpuProcess(limit_seconds=60.0) as process:
        yield process


def _problems() -> dict[str, Problem]:
    found: dict[str, Problem] = {}
    for precision in (Precision.FP32, Precision.FP16):
        found |= {
            f"convolution {n} {precision}": each(precision) for n, each in CONVOLUTIONS.items()
        }
    found |= {f"attention {n}": each for n, each in attentions(Precision.FP16).items()}
    found["attention capped"] = with_scores(attentions(Precision.FP16)["scaled"], CAPPED)
    for family in (softmaxes, reductions, elementwise):
        found |= {f"{family.__name__} {n}": each for n, each in family(FP16).items()}
    bias = (Tensor(FP16, (0, 0, 0, 1)),)
    found["matmul"] = Matmul(
        *(Precision.FP16, (Extent(2), 3), Extent(40), 56, 64),
        *(Tensor(FP16, (7680, 2560, 64, 1)), Tensor(FP16, (0, 0, 56, 1)), True),
        *(Tensor(FP16, (6720, 2240, 56, 1)), Epilogue(apply("Add", Acc(), Operand(0)), bias)),
    )
    table = Tensor(FP16, (1536, 512, 1))
    rows = (Extent(2), (2, 3), 512, 1e-5, Operand(0), (table,), table)
    scaled = apply("Mul", Acc(), Operand(0))
    vectors = (Tensor(FP16, (0, 0, 1)),) * 2
    shifted = Epilogue(apply("Add", scaled, Operand(1)), vectors)
    found["layer norm"] = Normalisation(NormKind.LAYER, *rows, shifted)
    found["rms norm"] = Normalisation(NormKind.RMS, *rows, Epilogue(scaled, vectors[:1]))
    return found


PROBLEMS = _problems()

NOT_OFFERED = frozenset(
    name
    for name, problem in PROBLEMS.items()
    if not name.startswith(("convolution", "attention", "matmul", "layer", "rms"))
    and (
        name == "elementwise transpose" or not isinstance(describe(problem)[0].node, PointwiseNode)
    )
)
"""Of which cuDNN may offer nothing: it computes no reduction and no transpose by itself on Hopper."""


@pytest.mark.parametrize("name", PROBLEMS)
def test_cpp_gives_pythons_bits(
    process: GpuProcess, tmp_path: Path, record: Callable[[str, object], None], name: str
) -> None:
    cases = list(islice(_cases(process, PROBLEMS[name]), MOST))
    said = {case.name: execute(case, tmp_path, THREADS) for case in cases}
    record(f"core.library_calls.{name}", {"compared": len(cases), "threads": THREADS})
    assert not {configuration: words for configuration, words in said.items() if words}
    assert cases or name in NOT_OFFERED


def test_an_output_of_other_bits_is_noticed(process: GpuProcess, tmp_path: Path) -> None:
    """The negative control."""
    right = next(_cases(process, PROBLEMS["matmul"]))
    wrong = replace(right, expected=bytes([right.expected[0] ^ 1]) + right.expected[1:])
    assert execute(wrong, tmp_path, 1) == "2 of 2 results differ"


@pytest.mark.parametrize(
    "name", ["convolution bias residual relu fp16", "matmul", "attention scaled", "layer norm"]
)
def test_the_plugin_has_cudnn_as_a_tactic(
    process: GpuProcess, tmp_path: Path, record: Callable[[str, object], None], name: str
) -> None:
    """Played by ``plugins/tests/drive_plugin.cpp``, which is no proof of working in TensorRT."""
    try:
        program = built("tests", "drive_plugin")
    except RowError as error:
        pytest.skip(str(error))
    case = next(_cases(process, PROBLEMS[name]))
    whole = operator_bytes(case.spec)
    call = case.spec.variants[0].work
    assert isinstance(call, LibraryCall)
    unknown = replace(call, version="9.0.0")
    refused = replace(case.spec, variants=(replace(case.spec.variants[0], work=unknown),))
    codes = []
    for number, spec in enumerate((whole, operator_bytes(refused))):
        path = tmp_path / f"{number}.spec"
        path.write_bytes(spec)
        words = [program, path, operator_id(spec)]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
        codes.append(done.returncode)
    record(f"plugin.cudnn.{name}", {"exit": codes[0], "another version": codes[1]})
    assert codes[0] == 0, done.stdout + done.stderr
    assert codes[1] != 0, "a version that is not installed is no tactic"


def _cases(process: GpuProcess, problem: Problem) -> Iterator[CoreCase]:
    """What cuDNN offers, with what Python makes of drawn operands; but for what gives other bits each time."""
    offer = process.offer("cuDNN", problem)
    library = find_library("cuDNN")
    for configuration in offer.configurations:
        image = LibraryImage("cuDNN", offer.version, problem, configuration)
        try:
            workspace = process.prepare(image)
        except EngineError:
            continue  # it is not compiled for this GPU
        memory = _memory(image, library.constant_layout(problem, configuration))
        results = {_executed(process, image, memory, workspace) for _ in range(RUNS)}
        if len(results) == 1:
            recipe = library.recipe(problem, configuration)
            inputs = tuple(range(len(memory) - 1))
            call = LibraryCall("cuDNN", offer.version, workspace, inputs, recipe)
            *inputs, output = places(problem, library.constant_layout(problem, configuration))
            dtypes = [place.tensor.dtype for place in (*inputs, output)]
            yield _case(image.digest[:12], call, dtypes, memory, results.pop())


def _memory(image: LibraryImage, layout: str | None) -> list[Bytes]:
    """The operands, and the output as it is before."""
    *inputs, output = places(image.problem, layout)
    rng = np.random.default_rng(11)
    memory = []
    for index, place in enumerate(inputs):
        held = np.zeros(place.bytes, np.uint8)
        values = rng.standard_normal(place.shape)
        if index == 1 and layout is not None:
            held = (
                lay_out(layout, values.astype(place.tensor.dtype.numpy)).reshape(-1).view(np.uint8)
            )
        else:
            place.view(held)[...] = values
        memory.append(held)
    return [*memory, np.full(output.bytes, POISON, np.uint8)]


def _executed(
    process: GpuProcess, image: LibraryImage, memory: Sequence[Bytes], workspace: int
) -> bytes:
    addresses = [process.allocate(each.size) for each in memory]
    scratch = process.allocate(max(1, workspace))
    for address, each in zip(addresses, memory, strict=True):
        process.write(address, each)
    process.launch(BoundCall(image.digest, tuple(addresses), scratch, workspace))
    found = process.read(addresses[-1], memory[-1].size).tobytes()
    for address in (*addresses, scratch):
        process.free(address)
    return found


def _case(
    name: str,
    call: LibraryCall,
    dtypes: Sequence[DType],
    memory: Sequence[Bytes],
    expected: bytes,
) -> CoreCase:
    """An operator over rows of elements: what shapes they have matters to nobody who has their addresses."""
    tensors = tuple(
        SpecTensor(dtype, (each.size // dtype.bytes,))
        for dtype, each in zip(dtypes, memory, strict=True)
    )
    variant = Variant(name, (Format.LINEAR,) * len(tensors), call)
    return CoreCase(
        family="cuDNN",
        name=name,
        features=frozenset({"library"}),
        spec=OperatorSpec(name, (), tensors[:-1], tensors[-1:], (), (variant,)),
        dims=(),
        inputs=b"".join(map(bytes, memory[:-1])),
        outputs=bytes(memory[-1]),
        expected=expected,
    )
