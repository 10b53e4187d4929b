"""``wpk-run`` and what is under it, the C API, on a double of CUDA's driver."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from support.networks.control_flow_models import MODELS as DRIVEN
from support.networks.fallback_models import LEFT_ALONE, MODELS
from support.plans.executed_plans import (
    BRANCHES,
    ExecutedPlan,
    Sum,
    branches_by_numpy,
    write_members,
)
from support.plugins import SANITIZED, built, run_plan

import wpk
from wpk.dtypes import DType
from wpk.libraries.cudnn_description import Description, GraphTensor, PointwiseNode
from wpk.libraries.cudnn_pointwise import PointwiseCall, PointwiseTensor
from wpk.libraries.cudnn_recipe import recipe_of

CALLS_AT_LEAST = 40


def recipe_of_sum(rows: int = 2, inputs: int = 2, operands: int = 2) -> bytes:
    """The sum of two tensors of four columns."""
    tensor = GraphTensor((rows, 4), (4, 1), DType.FP32)
    add = PointwiseCall("add", (PointwiseTensor(1), PointwiseTensor(2)))
    description = Description(PointwiseNode(), (tensor,) * inputs, tensor, operands, (add,))
    return recipe_of(description, (("graph", 0), ("engine", 1)))


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return BRANCHES.write(tmp_path / "m.plan")


def drawn(tmp_path: Path, rows: int) -> tuple[Path, np.ndarray]:
    x = np.random.default_rng(rows).integers(-9, 9, (rows, 4)).astype(np.float32)
    x.tofile(tmp_path / "x")
    return tmp_path / "x", x


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_gives_the_outputs_at_every_size(
    sanitized: Path, plan: Path, tmp_path: Path, rows: int
) -> None:
    file, x = drawn(tmp_path, rows)
    words = ("--dim", f"batch={rows}", "--input", f"x={file}", "--output", f"y={tmp_path / 'y'}")
    ran = run_plan(sanitized, plan, *words)
    assert ran.code == 0, ran.error
    y = np.fromfile(tmp_path / "y", np.float32).reshape(rows, 4)
    assert (y == branches_by_numpy(x)).all()
    assert ran.calls[-1] == "left 0"
    assert not [line for line in ran.calls if line.startswith("wrong")]


def test_says_what_it_runs_and_how_long_it_takes(sanitized: Path, plan: Path) -> None:
    ran = run_plan(sanitized, plan, "--repeat", "3")
    assert ran.code == 0, ran.error
    lines = [line.split("\t") for line in ran.output.splitlines()]
    assert lines[:2] == [["input", "x", "fp32[2, 4]"], ["output", "y", "fp32[2, 4]"]]
    assert [line[0] for line in lines[2:]] == ["first_result_ms", "median_ms of 3 runs"]
    assert all(float(line[1]) >= 0 for line in lines[2:])


@pytest.mark.parametrize("rows", [2, 5])
def test_values_in_one_buffer_keep_apart(sanitized: Path, tmp_path: Path, rows: int) -> None:
    plan = replace(BRANCHES, together=("b", "c")).write(tmp_path / "together.plan")
    file, x = drawn(tmp_path, rows)
    words = ("--dim", f"batch={rows}", "--input", f"x={file}", "--output", f"y={tmp_path / 'y'}")
    assert run_plan(sanitized, plan, *words).code == 0
    y = np.fromfile(tmp_path / "y", np.float32).reshape(rows, 4)
    assert (y == branches_by_numpy(x)).all()


def test_a_missing_edge_shows_on_the_double(sanitized: Path, tmp_path: Path) -> None:
    """The negative control: the double does not hide what the order of a graph's nodes must give."""
    *before, last = BRANCHES.steps
    hasty = replace(BRANCHES, steps=(*before, replace(last, predecessors=(2,))))
    file, x = drawn(tmp_path, 2)
    words = ("--input", f"x={file}", "--output", f"y={tmp_path / 'y'}")
    assert run_plan(sanitized, hasty.write(tmp_path / "hasty.plan"), *words).code == 0
    y = np.fromfile(tmp_path / "y", np.float32).reshape(2, 4)
    assert (y != branches_by_numpy(x)).any()


def test_whatever_call_fails_all_is_given_back(sanitized: Path, plan: Path) -> None:
    calls = 0
    while (ran := run_plan(sanitized, plan, failing_call=calls + 1)).code != 0:
        calls += 1
        assert ran.code == 1, ran.error
        assert ran.error.startswith("wpk-run: error: "), ran.error
        assert "; fix: " in ran.error
        assert ran.error.count("\n") == 1
        left = [line for line in ran.calls if line.startswith(("left", "wrong"))]
        assert left == ["left 0"], (calls, ran.calls)
    assert calls > CALLS_AT_LEAST


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        ("cuDNN", "calls cuDNN 9.9, and this wpk is built without cuDNN; fix: build it with"),
        ("cuBLAS", "calls cuBLAS 9.9, and of libraries only cuDNN is called here; fix: "),
    ],
)
def test_refuses_libraries_that_are_not_built_in(
    sanitized: Path, tmp_path: Path, library: str, reason: str
) -> None:
    steps = (Sum(("x", "weight"), "y", library=library, recipe=recipe_of_sum()),)
    ran = run_plan(sanitized, ExecutedPlan(steps).write(tmp_path / "library.plan"))
    assert ran.code == 1
    assert f"step 'add_0' of the plan: it {reason}" in ran.error
    assert ran.calls[-1] == "left 0"


@pytest.mark.parametrize(
    ("recipe", "reason"),
    [
        (recipe_of_sum(rows=3), "it reaches 48 bytes far from where its input 0 begins, 32 are"),
        (recipe_of_sum(inputs=3, operands=3), "it has 2 inputs and 1 outputs, its recipe 4"),
        (recipe_of_sum()[:-1], "the spec ends within"),
    ],
)
def test_a_recipe_reaches_no_further_than_its_operands(
    sanitized: Path, tmp_path: Path, recipe: bytes, reason: str
) -> None:
    """As Python refuses it; before a library is asked, which is not built in here."""
    steps = (Sum(("x", "weight"), "y", library="cuDNN", recipe=recipe),)
    ran = run_plan(sanitized, ExecutedPlan(steps).write(tmp_path / "library.plan"))
    assert ran.code == 1
    assert "step 'add_0' of the plan: " in ran.error
    assert reason in ran.error
    assert ran.calls[-1] == "left 0"


@pytest.mark.parametrize(("batch", "reaches"), [(2, False), (3, True), (4, True)])
def test_a_tensor_map_reaches_no_further_than_its_operand(
    sanitized: Path, tmp_path: Path, batch: int, reaches: bool
) -> None:
    steps = (Sum(("x", "weight"), "y", mapped_rows=3),)
    path = ExecutedPlan(steps).write(tmp_path / "map.plan")
    ran = run_plan(sanitized, path, "--dim", f"batch={batch}")
    assert (ran.code == 0) == reaches, ran.error
    if not reaches:
        assert "step 'add_0' of the plan: it reaches 48 bytes far from" in ran.error
        assert "input 0 begins, 32 are there; fix: " in ran.error
    assert ran.calls[-1] == "left 0"


@pytest.fixture(scope="module")
def with_cudnn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build with cuDNN, whose headers are named by the environment as CMake names them."""
    names = ("WPK_CUDNN_INCLUDE", "WPK_CUDNN_FRONTEND_INCLUDE", "WPK_CUDA_INCLUDE")
    missing = [name for name in names if name not in os.environ]
    if missing:
        pytest.skip(f"needs headers: {', '.join(missing)}")
    options = [f"-D{name}={os.environ[name]}" for name in names]
    return built(tmp_path_factory.mktemp("with_cudnn"), *SANITIZED, *options)


def test_says_that_cudnn_is_not_installed(
    with_cudnn: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WPK_CUDNN", "/nowhere/libcudnn.so.9")
    steps = (Sum(("x", "weight"), "y", library="cuDNN", recipe=recipe_of_sum()),)
    plan = ExecutedPlan(steps).write(tmp_path / "library.plan")
    ran = run_plan(with_cudnn, plan)
    assert ran.code == 1
    assert "step 'add_0' of the plan: cuDNN is not found: /nowhere/libcudnn.so.9" in ran.error
    assert "fix: put its folder in LD_LIBRARY_PATH, or name the file in WPK_CUDNN" in ran.error
    assert ran.calls[-1] == "left 0"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--dim", "rows=2"), "no free dimension 'rows'"),
        (("--dim", "batch=0"), "at least 1"),
        (("--dim", "batch"), "expected NAME=VALUE"),
        (("--dim", f"batch={2**62}"), "larger than any memory"),
        (("--dim", f"batch={2**62 + 1}"), f"give one from 1 to {2**62}"),
        (("--input", "z=file"), "no input 'z'"),
        (("--input", "x=/nowhere"), "0 bytes that can be read"),
        (("--output", "y=/nowhere/y"), "cannot be written"),
        (("--repeat", "many"), "at least 1"),
        (("--frobnicate",), "not understood"),
        (("--repeat",), "lacks its value"),
    ],
)
def test_refuses_arguments_in_words(
    sanitized: Path, plan: Path, words: tuple[str, ...], reason: str
) -> None:
    ran = run_plan(sanitized, plan, *words)
    assert ran.code == 1
    assert reason in ran.error
    assert "; fix: " in ran.error


def test_refuses_a_plan_that_is_not_there(sanitized: Path, tmp_path: Path) -> None:
    ran = run_plan(sanitized, tmp_path / "no.plan")
    assert ran.code == 1
    assert "No such file" in ran.error


def rewritten(path: Path, change: dict[str, bytes | None]) -> Path:
    """A plan with other members, of which None is left out."""
    members = BRANCHES.members() | change
    write_members(path, {name: data for name, data in members.items() if data is not None})
    return path


KERNEL = f"kernels/{2:064x}.cubin"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"plan.spec": None}, "plan.spec"),
        ({KERNEL: None}, KERNEL),
        ({KERNEL: b"pp"}, "an ELF header alone"),
        ({KERNEL: b"\x7fELF" + bytes(200)}, "no ELF file of the CUDA architecture"),
        ({KERNEL: BRANCHES.members()[KERNEL][:100]}, "do not lie within"),
        ({"weights.safetensors": b"short"}, "weight"),
        ({"plan.spec": b"WPKS"}, "the spec ends within"),
        ({"more": b""}, "that no plan has"),
        ({"plan.json": None}, "plan.json"),
    ],
)
def test_refuses_a_plan_whose_parts_are_wrong(
    sanitized: Path, tmp_path: Path, change: dict[str, bytes | None], reason: str
) -> None:
    ran = run_plan(sanitized, rewritten(tmp_path / "m.plan", change))
    assert ran.code == 1, ran.output
    assert reason in ran.error
    assert "; fix: " in ran.error
    assert ran.calls == [] or ran.calls[-1] == "left 0"


@pytest.mark.usefixtures("one_cubin")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("between", "calls ONNX Runtime"),
        ("double", "calls ONNX Runtime"),
        ("collect", "calls engines of bodies"),
    ],
)
def test_refuses_what_onnxruntime_executes_or_the_host_drives(
    sanitized: Path, tmp_path: Path, name: str, reason: str
) -> None:
    onnx.save((MODELS | DRIVEN)[name](), tmp_path / "m.onnx")
    wpk.optimize(
        tmp_path / "m.onnx",
        tmp_path / "m.plan",
        target="h200",
        search="static",
        check="off",
        skip_passes=LEFT_ALONE,
    )
    ran = run_plan(sanitized, tmp_path / "m.plan")
    assert ran.code == 1
    assert reason in ran.error
    assert "fix: execute it with Python: wpk run" in " ".join(ran.error.split())
    assert ran.calls[-1:] in ([], ["left 0"])
