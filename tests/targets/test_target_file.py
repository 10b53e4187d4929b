"""Target files: what they override, and what they may not say."""

import json
from pathlib import Path

import pytest

from wpk.dtypes import Precision
from wpk.errors import TargetError
from wpk.targets.registry import find_target
from wpk.targets.table import TARGETS
from wpk.targets.target import Target
from wpk.targets.target_file import as_file, load_target, named_target


def _write(folder: Path, content: object, name: str = "gpu.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_overrides_a_known_target_and_says_so_in_the_sources(tmp_path: Path) -> None:
    path = _write(tmp_path, {"base": "h200", "name": "capped", "clock": 1.4e9, "sm_count": 66})
    target = load_target(path)
    assert (target.name, target.clock, target.sm_count) == ("capped", 1.4e9, 66)
    assert target.l2_bytes == find_target("h200").l2_bytes
    assert dict(target.sources)["clock"] == "target file gpu.json"
    assert "datasheet" in dict(target.sources)["global_bandwidth"]


def test_reads_toml_with_a_table_of_tensor_peaks(tmp_path: Path) -> None:
    path = _write(tmp_path, 'base = "sm_80"\n[peak_tensor]\nfp16 = 100e12\n', "gpu.toml")
    target = load_target(path)
    assert target.tensor_peak(Precision.FP16) == 100e12
    assert target.tensor_peak(Precision.BF16) is None


def test_a_complete_file_needs_no_base(tmp_path: Path) -> None:
    data = as_file(find_target("a100"))
    del data["sources"]
    target = load_target(_write(tmp_path, data))
    assert target.peak_tensor == find_target("a100").peak_tensor
    assert target.capability == (8, 0)
    assert set(dict(target.sources).values()) == {"target file gpu.json"}


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_what_describes_a_target_is_a_file_of_it(tmp_path: Path, target: Target) -> None:
    assert load_target(_write(tmp_path, as_file(target))) == target


def test_a_file_may_say_where_its_numbers_are_from(tmp_path: Path) -> None:
    said = {
        "base": "h200",
        "clock": 1.7e9,
        "l2_bytes": 1 << 25,
        "sources": {"clock": "nvidia-smi -q"},
    }
    sources = dict(load_target(_write(tmp_path, said)).sources)
    assert sources["clock"] == "nvidia-smi -q"
    assert sources["l2_bytes"] == "target file gpu.json"


def test_a_file_is_named_by_its_suffix(tmp_path: Path) -> None:
    path = _write(tmp_path, {"base": "t4", "name": "mine"})
    assert named_target(str(path)).name == "mine"
    assert named_target("t4").name == "t4"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"base": "h200", "clok": 1e9}, "unknown keys clok"),
        ({"base": "h200", "sources": []}, "'sources' must be a table"),
        ({"base": "h200", "sources": {"clok": "a guess"}}, "'sources' must be a table over"),
        ({"base": "h200", "sources": {"clock": 3}}, "'sources.clock' must be a text"),
        ({"clock": 1e9}, "missing keys name"),
        ({"base": "h201"}, "unknown target 'h201'"),
        ({"base": 3}, "'base' must name"),
        ({"base": "h200", "clock": -1.0}, "'clock' is -1.0; plausible is"),
        ({"base": "h200", "clock": "fast"}, "'clock' must be a number"),
        ({"base": "h200", "sm_count": True}, "'sm_count' must be a whole number"),
        ({"base": "h200", "sm_count": 1.5}, "'sm_count' must be a whole number"),
        ({"base": "h200", "sm_count": 0}, "'sm_count' is 0"),
        ('{"base": "h200", "peak_ordinary": NaN}', "'peak_ordinary' is nan"),
        ('{"base": "h200", "peak_double": 0}', "'peak_double' is 0; plausible is 1e"),
        ('{"base": "h200", "clock": Infinity}', "'clock' is inf"),
        ({"base": "h200", "clock": 10**400}, "'clock' is 1000"),
        ({"base": "h200", "global_bandwidth": 1e30}, "'global_bandwidth' is 1e+30"),
        ({"base": "h200", "global_bandwidth": 1e14}, "exceeds 'l2_bandwidth'"),
        ({"base": "h200", "max_shared_block": 1 << 20}, "exceeds 'max_shared_sm'"),
        ({"base": "h200", "peak_tensor": {"fp8": 1e15}}, "'peak_tensor' must be a table"),
        ({"base": "h200", "peak_tensor": {"fp16": 0}}, "'peak_tensor.fp16' is 0"),
        ({"base": "h200", "arch": "hopper"}, "spells it like sm_90a"),
        ({"base": "h200", "arch": "sm_80"}, "disagree"),
        ({"base": "h200", "capability": [9]}, "must be [major, minor]"),
        ({"base": "h200", "name": ""}, "'name' must be a text of 1 to 200 letters"),
        ([1, 2], "expected a table of keys, got list"),
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
    ],
)
def test_refuses_in_words(tmp_path: Path, content: object, words: str) -> None:
    with pytest.raises(TargetError) as caught:
        load_target(_write(tmp_path, content))
    assert words in caught.value.what
    assert caught.value.fix


def test_refuses_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "gpu.json"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(TargetError, match="not valid JSON"):
        load_target(path)


def test_refuses_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="cannot be read"):
        load_target(tmp_path / "none.json")
