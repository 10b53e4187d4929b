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
from support.plans.forged_plans import members, rewrite

from wpk.errors import PlanError
from wpk.plan import container
from wpk.plan.container import member_of, write_container
from wpk.plan.output_file import OutputError
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import plan_text, read_plan, spec_of_bundle, write_parts, write_plan
from wpk.plan.weights_file import read_weights, write_weights


@pytest.fixture
def path(tmp_path: Path, bundle: PlanBundle) -> Path:
    plan = tmp_path / "m.plan"
    write_plan(plan, bundle)
    return plan


def zipped(path: Path, contents: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> None:
    """As any program would write a zip."""
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
        assert archive.namelist()[:3] == ["plan.json", "plan.spec", "weights.safetensors"]


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
        (
            _set("steps", 0, "operator", "outputs", to=[]),
            r"operator.outputs: \(\) is not one value",
        ),
        (
            _set("steps", 0, "operator", "outputs", to=["q"]),
            r"operator.outputs: .* is not one value",
        ),
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
        (b'{"schema": 12}', "missing"),
        (b'{"schema": ' + b"9" * 5000 + b"}", "no JSON"),
        (b'{"schema": 12, "wpk": "\\ud800"}', "half a character"),
        (b'{"schema": 12, "wpk": "\xed\xa0\x80"}', "no JSON"),
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
    zipped(path, {**members(path), "plan.json": b" " * 10**8}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10**6
    with pytest.raises(PlanError, match="compressed member"):
        read_plan(path)


def test_a_plan_has_as_many_members_as_it_may(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = len(members(path))
    monkeypatch.setattr(container, "MAX_MEMBERS", count)
    read_plan(path)
    monkeypatch.setattr(container, "MAX_MEMBERS", count - 1)
    with pytest.raises(PlanError, match=f"has {count} members"):
        read_plan(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_refuses_a_member_twice(path: Path) -> None:
    contents = members(path)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("plan.json", contents["plan.json"])
    with pytest.raises(PlanError, match=r"two members 'plan\.json'"):
        read_plan(path)


@pytest.mark.parametrize(
    "missing", ["plan.json", "plan.spec", "weights.safetensors", "plan.sha256"]
)
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


def test_every_flipped_byte_is_refused(path: Path) -> None:
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    drawn = rng.choice(len(data), 400, replace=False).tolist()
    edges = [*range(80), *range(len(data) - 500, len(data))]
    for position in (*edges, *drawn):
        damaged = bytearray(data)
        damaged[position] ^= 0x41
        path.write_bytes(damaged)
        with pytest.raises(PlanError):
            read_plan(path)


def test_a_plan_text_that_was_changed_is_noticed_by_its_digest(path: Path) -> None:
    contents = members(path)
    changed = contents["plan.json"].replace(b'"n": 2', b'"n": 3')
    assert changed != contents["plan.json"]
    write_container(
        path, {n: member_of(changed if n == "plan.json" else d) for n, d in contents.items()}
    )
    with pytest.raises(PlanError, match=r"plan.json does not have the digest that plan.sha256"):
        read_plan(path)


def test_the_digest_is_one_that_sha256sum_checks(path: Path, bundle: PlanBundle) -> None:
    contents = members(path)
    digest = hashlib.sha256(contents["plan.json"]).hexdigest()
    assert contents["plan.sha256"] == f"{digest}  plan.json\n".encode()


def with_comment(data: bytes) -> bytes:
    return data[:-2] + b"\x04\x00Evil"


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (lambda data: b"#!/bin/sh\nexit 0\n" + data, "in front of member 'plan.json'"),
        (lambda data: data + b"#!/bin/sh", "."),
        (lambda data: data + bytes(4), "."),
        (with_comment, "behind its last member"),
    ],
)
def test_what_is_not_the_zips_own_is_refused(
    path: Path, change: Callable[[bytes], bytes], where: str
) -> None:
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(PlanError, match=where):
        read_plan(path)


def test_a_zip_that_another_program_wrote_is_refused(path: Path) -> None:
    """It has dates, which could be anything, and room between members."""
    zipped(path, members(path))
    with pytest.raises(PlanError, match=r"in front of member 'plan.json' that no plan has there"):
        read_plan(path)


def test_extra_fields_are_refused(path: Path) -> None:
    contents = members(path)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in contents.items():
            info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            info.create_system, info.external_attr = 3, 0o644 << 16
            if name == "plan.json":
                info.extra = b"\xfe\xca\x04\x00Evil"
            archive.writestr(info, data)
    with pytest.raises(PlanError, match=r"in front of member"):
        read_plan(path)


def test_large_members_have_sizes_of_64_bits_and_are_read(
    tmp_path: Path, bundle: PlanBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if 4 GiB were 64 bytes: every part of the format that large files need is written."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 64)
    write_plan(tmp_path / "large.plan", bundle)
    assert read_plan(tmp_path / "large.plan").plan == bundle.plan
    assert b"PK\x06\x06" in (tmp_path / "large.plan").read_bytes()


def entry(dtype: str, shape: str, offsets: str) -> bytes:
    return f'{{"w": {{"dtype": "{dtype}", "shape": {shape}, "data_offsets": {offsets}}}}}'.encode()


@pytest.mark.parametrize(
    ("header", "field"),
    [
        (b"{}", "weights"),
        (b"[]", "its header is no object"),
        (b"\xff", "its header is no JSON"),
        (b'{"w": 8}', "expected dtype, shape and data_offsets"),
        (b'{"w": {"dtype": "F32", "shape": [8]}}', "expected dtype, shape and data_offsets"),
        (entry("F99", "[8]", "[0, 32]"), "w.dtype"),
        (entry("F32", "[-8]", "[0, 32]"), "w.shape"),
        (entry("F32", "8", "[0, 32]"), "w.shape"),
        (entry("F32", "{}", "[0, 4]"), "w.shape"),
        (entry("F32", "[true]", "[0, 4]"), "w.shape"),
        (entry("F32", "[1.0]", "[0, 4]"), "w.shape"),
        (entry("F32", "[281474976710656, 0]", "[0, 0]"), "w.shape"),
        (entry("F32", "[0, 140737488355328, 140737488355328]", "[0, 0]"), "w.shape"),
        (entry("F32", "[0, 16777216, 16777216]", "[0, 0]"), "w.shape"),
        (entry("F32", "[1099511627776, 1099511627776]", "[0, 32]"), "w.shape"),
        (entry("F32", f"[8{', 1' * 16}]", "[0, 32]"), "w.shape"),
        (entry("F32", f"[8{', 1' * 1000}]", "[0, 32]"), "w.shape"),
        (entry("F32", "[8]", "[0, 999]"), "w.data_offsets"),
        (entry("F32", "[9]", "[0, 32]"), "w.data_offsets"),
        (entry("F32", "[8]", "[0, 32, 32]"), "w.data_offsets"),
        (entry("F32", "[8]", "[1, 33]"), "w.data_offsets"),
        (entry("F32", "[8]", "[-32, 0]"), "w.data_offsets"),
        (entry("F32", "[8]", "32"), "w.data_offsets"),
    ],
)
def test_refuses_damaged_weights(path: Path, header: bytes, field: str) -> None:
    weights = len(header).to_bytes(8, "little") + header + bytes(32)
    rewrite(path, {**members(path), "weights.safetensors": weights})
    with pytest.raises(PlanError, match=field):
        read_plan(path)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        bytes(7),
        bytes(8),
        (33).to_bytes(8, "little") + bytes(32),
        (2**63).to_bytes(8, "little") + b"{}",
    ],
)
def test_refuses_a_header_that_is_not_there(data: bytes) -> None:
    with pytest.raises(PlanError, match=r"weights.safetensors: its header"):
        read_weights(data)


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


def test_refuses_a_spec_that_says_something_else(tmp_path: Path, bundle: PlanBundle) -> None:
    other = replace(bundle, plan=replace(bundle.plan, target=bundle.plan.target + "x"))
    path = tmp_path / "m.plan"
    write_parts(path, plan_text(bundle.plan), spec_of_bundle(other), bundle)
    with pytest.raises(PlanError, match=r"plan\.spec.*does not say what plan\.json says"):
        read_plan(path)
