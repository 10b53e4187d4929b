"""Target files: what they override, and what they may not say."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from wpk.dtypes import Precision
from wpk.errors import TargetError
from wpk.targets.registry import find_target
from wpk.targets.target_file import load_target


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
    data = asdict(find_target("a100"))
    del data["sources"]
    data["peak_tensor"] = dict(data["peak_tensor"])
    target = load_target(_write(tmp_path, data))
    assert target.peak_tensor == find_target("a100").peak_tensor
    assert target.capability == (8, 0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"base": "h200", "clok": 1e9}, "unknown keys clok"),
        ({"base": "h200", "sources": []}, "unknown keys sources"),
        ({"clock": 1e9}, "missing keys name"),
        ({"base": "h201"}, "unknown target 'h201'"),
        ({"base": 3}, "'base' must name"),
        ({"base": "h200", "clock": -1.0}, "'clock' is -1.0; plausible is"),
        ({"base": "h200", "clock": "fast"}, "'clock' must be a number"),
        ({"base": "h200", "sm_count": True}, "'sm_count' must be a whole number"),
        ({"base": "h200", "sm_count": 1.5}, "'sm_count' must be a whole number"),
        ({"base": "h200", "sm_count": 0}, "'sm_count' is 0"),
        ('{"base": "h200", "peak_ordinary": NaN}', "'peak_ordinary' is nan"),
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
        ({"base": "h200", "name": ""}, "'name' must be a short text"),
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
