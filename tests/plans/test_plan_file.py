"""Writing and reading plans; what a damaged or hostile file gets."""

import hashlib
import io
import json
import resource
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors import deserialize
from safetensors.numpy import save as save_safetensors

from wpk.errors import PlanError
from wpk.plans.atomic_file import OutputError
from wpk.plans.plan import PlanBundle
from wpk.plans.plan_file import read_plan, write_plan
from wpk.plans.weights_file import read_weights, write_weights


@pytest.fixture
def path(tmp_path: Path, bundle: PlanBundle) -> Path:
    plan = tmp_path / "m.plan"
    write_plan(plan, bundle)
    return plan


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewrite(path: Path, contents: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in contents.items():
            archive.writestr(name, data)


def test_a_plan_reads_back_equal(path: Path, bundle: PlanBundle) -> None:
    seen = read_plan(path)
    assert seen.plan == bundle.plan
    assert (seen.weights["w"] == bundle.weights["w"]).all()
    assert (seen.cubins, seen.sources) == (bundle.cubins, bundle.sources)


def test_the_same_plan_gives_the_same_bytes(tmp_path: Path, path: Path, bundle: PlanBundle) -> None:
    again = tmp_path / "again.plan"
    shuffled = replace(bundle.plan, values=dict(reversed(bundle.plan.values.items())))
    write_plan(again, replace(bundle, plan=shuffled))
    assert again.read_bytes() == path.read_bytes()


def test_members_are_stored_uncompressed(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        assert {info.compress_type for info in archive.infolist()} == {zipfile.ZIP_STORED}
        assert archive.namelist()[:2] == ["plan.json", "weights.safetensors"]


ARRAYS: dict[str, np.ndarray] = {
    "half": np.arange(3, dtype=np.float16),
    "brain": np.arange(4, dtype=ml_dtypes.bfloat16).reshape(2, 2),
    "long": np.array([2**40], np.int64),
    "flags": np.array([[True], [False]]),
    "scalar": np.array(3, np.int32),
}


def written(arrays: dict[str, np.ndarray]) -> bytes:
    stream = io.BytesIO()
    write_weights(stream, arrays)
    return stream.getvalue()


def test_safetensors_reads_what_is_written() -> None:
    seen = dict(deserialize(written(ARRAYS)))
    assert seen.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert bytes(seen[name]["data"]) == array.tobytes()
        assert tuple(seen[name]["shape"]) == array.shape
    assert seen["brain"]["dtype"] == "BF16"


@pytest.mark.parametrize("write", [written, save_safetensors], ids=["ours", "safetensors"])
def test_every_element_type_survives_the_weights_file(
    write: Callable[[dict[str, np.ndarray]], bytes],
) -> None:
    seen = read_weights(write(ARRAYS))
    for name, array in ARRAYS.items():
        assert seen[name].dtype == array.dtype
        assert (seen[name] == array).all()
        assert seen[name].shape == array.shape


def test_the_order_of_weights_changes_no_byte_and_no_layout_changes_a_value() -> None:
    assert written(dict(reversed(ARRAYS.items()))) == written(ARRAYS)
    across = np.arange(6, dtype=np.float32).reshape(2, 3).T
    assert (read_weights(written({"across": across}))["across"] == across).all()


Change = Callable[[dict[str, Any]], None]


def _set(*keys: Any, to: Any) -> Change:
    def change(plan: dict[str, Any]) -> None:
        at: Any = plan
        for key in keys[:-1]:
            at = at[key]
        at[keys[-1]] = to

    return change


BUFFERS = ("buffers", "by", "bytes")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (_set("schema", to=99), "plan.schema: 99; this wpk"),
        (_set("schema", to=None), "plan.schema"),
        (_set("arch", to="../x"), "plan.arch"),
        (_set("surprise", to=1), "plan.surprise: unknown field"),
        (_set("free", "n", to=0), "plan.free.n: 0 is not within"),
        (_set("values", "y", "offset", to=-4), "plan.values.y.offset: -4"),
        (_set("values", "y", "offset", to=2), "plan.values.y.offset: 2 is not aligned"),
        (_set("values", "y", "offset", to=2**50), "plan.values.y.offset"),
        (_set("values", "y", "strides", to=[2**39, 1]), "plan.values.y: ends at byte"),
        (_set("values", "y", "strides", to=[-8, 1]), "plan.values.y.strides: -8"),
        (_set("values", "y", "strides", to=[1]), "plan.values.y.strides"),
        (_set("values", "y", "buffer", to="nowhere"), "plan.values.y.buffer"),
        (_set("values", "y", "name", to="z"), "plan.values.y.name"),
        (_set("values", "y", "shape", to=[2, 10**9]), "plan.values.y: ends at byte"),
        (_set(*BUFFERS, to=2**60), "plan.buffers.by.bytes"),
        (_set(*BUFFERS, to="unknown"), "free dimension 'unknown' has no value"),
        (_set(*BUFFERS, to=["floor_div", 1, 0]), "divides by zero"),
        (_set("inputs", 0, "name", to="q"), r"plan.inputs\[0\].name"),
        (_set("inputs", 0, "dtype", to="fp16"), r"plan.inputs\[0\].dtype"),
        (_set("inputs", 0, "shape", to=["n", 9]), r"plan.inputs\[0\].shape"),
        (_set("weights", "w", "digest", to="0" * 64), "plan.weights.w.digest"),
        (_set("weights", "w", "shape", to=[4, 2]), "plan.weights.w: stored as"),
        (_set("weights", to={}), "plan.weights: not stored"),
        (_set("kernels", "ab" * 32, "cubin_digest", to="0" * 64), "cubin_digest"),
        (_set("kernels", "ab" * 32, "source_digest", to="0" * 64), "source_digest"),
        (_set("kernels", "ab" * 32, "entry", to="other"), r"launches\[0\].kernel"),
        (_set("steps", 0, "inputs", to=["x"]), r"plan.steps\[0\].inputs: 1 names"),
        (_set("steps", 0, "inputs", to=["x", "v"]), r"plan.steps\[0\].inputs\[1\]: no value"),
        (_set("steps", 0, "launches", to=[]), r"plan.steps\[0\].launches: is empty"),
        (_set("steps", 0, "launches", 0, "grid", to=[0, 1, 1]), "grid: 0"),
        (_set("steps", 0, "launches", 0, "grid", to=[1, 65536, 1]), "grid: 65536"),
        (_set("steps", 0, "launches", 0, "block", to=[1024, 2, 1]), "block: 2048"),
        (_set("steps", 0, "launches", 0, "shared_bytes", to=2**30), "shared_bytes"),
        (_set("steps", 0, "launches", 0, "cluster", to=[32, 1, 1]), "cluster"),
        (_set("steps", 0, "launches", 0, "arguments", 0, "index", to=2), r"arguments\[0\].index"),
        (
            _set("steps", 0, "operator", "problem", "shape", to=[2, 9]),
            r"inputs\[0\]: the problem reaches 68 bytes far, 64 are there",
        ),
        (
            _set("steps", 0, "operator", "problem", "y", "strides", to=[80, 1]),
            r"outputs\[0\]: the problem reaches",
        ),
    ],
)
def test_names_the_field_that_is_wrong(path: Path, change: Change, field: str) -> None:
    contents = members(path)
    plan = json.loads(contents["plan.json"])
    change(plan)
    rewrite(path, {**contents, "plan.json": json.dumps(plan).encode()})
    with pytest.raises(PlanError, match=field):
        read_plan(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "no JSON"),
        (b"[" * 100_000, "no JSON"),
        (b'{"schema": NaN}', "bare NaN"),
        (b'{"schema": 1, "schema": 1}', "names a field twice"),
        (b"[]", "expected an object"),
        (b'{"schema": 3}', "missing"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "no JSON"),
    ],
)
def test_refuses_text_that_is_no_plan(path: Path, text: bytes, reason: str) -> None:
    rewrite(path, {**members(path), "plan.json": text})
    with pytest.raises(PlanError, match=reason):
        read_plan(path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil", "which no plan has"),
        ("/etc/passwd", "which no plan has"),
        ("kernels/../../x.cubin", "which no plan has"),
        (f"kernels/{'00' * 32}.cubin", "stored but not named"),
    ],
)
def test_refuses_members_that_no_plan_has(path: Path, name: str, reason: str) -> None:
    rewrite(path, {**members(path), name: b"x"})
    with pytest.raises(PlanError, match=reason):
        read_plan(path)


def test_refuses_a_zip_bomb(path: Path) -> None:
    rewrite(path, {**members(path), "plan.json": b" " * 10**8}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**6
    with pytest.raises(PlanError, match="compressed member"):
        read_plan(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_refuses_a_member_twice(path: Path) -> None:
    contents = members(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("plan.json", contents["plan.json"])
    with pytest.raises(PlanError, match=r"two members 'plan\.json'"):
        read_plan(path)


@pytest.mark.parametrize("missing", ["plan.json", "weights.safetensors"])
def test_refuses_a_plan_without_a_part(path: Path, missing: str) -> None:
    contents = members(path)
    del contents[missing]
    rewrite(path, contents)
    with pytest.raises(PlanError, match=f"no member '{missing}'"):
        read_plan(path)


def test_every_cut_is_refused(path: Path) -> None:
    data = path.read_bytes()
    for end in range(0, len(data), max(1, len(data) // 60)):
        path.write_bytes(data[:end])
        with pytest.raises(PlanError):
            read_plan(path)


def test_a_flipped_byte_is_refused_or_changes_nothing(path: Path, bundle: PlanBundle) -> None:
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for position in rng.choice(len(data), 200, replace=False):
        damaged = bytearray(data)
        damaged[position] ^= 0x41
        path.write_bytes(damaged)
        try:
            assert read_plan(path).plan == bundle.plan  # a byte that only zip tools look at
        except PlanError:
            continue


@pytest.mark.parametrize(
    "header",
    [
        b"{}",
        b"[]",
        b"\xff",
        b'{"w": {"dtype": "F32", "shape": [8], "data_offsets": [0, 999]}}',
        b'{"w": {"dtype": "F32", "shape": [9], "data_offsets": [0, 32]}}',
        b'{"w": {"dtype": "F32", "shape": [-8], "data_offsets": [0, 32]}}',
        b'{"w": {"dtype": "F99", "shape": [8], "data_offsets": [0, 32]}}',
        b'{"w": {"dtype": "F32", "shape": [1099511627776, 1099511627776], "data_offsets": [0, 32]}}',
    ],
)
def test_refuses_damaged_weights(path: Path, header: bytes) -> None:
    weights = len(header).to_bytes(8, "little") + header + bytes(32)
    rewrite(path, {**members(path), "weights.safetensors": weights})
    with pytest.raises(PlanError, match=r"weights"):
        read_plan(path)


def test_a_full_disk_leaves_the_old_file(path: Path, bundle: PlanBundle) -> None:
    before = path.read_bytes()
    big = np.zeros(200_000, np.float32)
    weight = replace(
        bundle.plan.weights["w"], shape=big.shape, digest=hashlib.sha256(big).hexdigest()
    )
    plan = replace(bundle.plan, weights={"w": weight})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(OutputError, match="cannot be written"):
            write_plan(path, replace(bundle, plan=plan, weights={"w": big}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == before
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_no_plan_is_written_that_cannot_be_read(tmp_path: Path, bundle: PlanBundle) -> None:
    plan = replace(bundle.plan, arch="nonsense")
    with pytest.raises(PlanError, match=r"plan\.arch"):
        write_plan(tmp_path / "m.plan", replace(bundle, plan=plan))
    assert not list(tmp_path.iterdir())
