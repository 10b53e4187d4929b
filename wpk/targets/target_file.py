"""Targets described by a file: another GPU, or a known one with other numbers.

    {"base": "h200", "name": "h200-capped", "clock": 1.4e9, "peak_tensor": {"fp16": 7.0e14}}

JSON or TOML, by the file's suffix. Keys are the attributes of `Target`; what is missing comes from
``base``, and without one everything must be there. ``peak_tensor`` replaces the whole table. What
`as_file` gives is such a file. docs/targets.md has it key by key.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from wpk.dtypes import Precision
from wpk.errors import TargetError
from wpk.targets.registry import find_target
from wpk.targets.target import Target

_ARCH = re.compile(r"sm_(\d+)(\d)[af]?")
_KIB = 1024
_SUFFIXES = (".json", ".toml")

_INTEGERS: dict[str, tuple[int, int]] = {
    "sm_count": (1, 4096),
    "l2_bytes": (64 * _KIB, 16 * _KIB**3),
    "transaction_bytes": (16, 512),
    "shared_latency": (1, 1000),
    "max_shared_block": (_KIB, 4096 * _KIB),
    "max_shared_sm": (_KIB, 4096 * _KIB),
    "max_threads_block": (32, 1024),
    "max_threads_sm": (32, 8192),
    "max_blocks_sm": (1, 256),
    "registers_sm": (1024, 1024 * _KIB),
}
_FLOATS: dict[str, tuple[float, float]] = {
    "clock": (1e8, 1e10),
    "peak_ordinary": (1e10, 1e17),
    "peak_double": (1e8, 1e17),
    "global_bandwidth": (1e9, 1e15),
    "l2_bandwidth": (1e9, 1e16),
    "launch_seconds": (0.0, 1e-3),
}
"""Smallest and largest value that some GPU of the last or the next ten years might have."""

_TEXTS = ("name", "description", "arch")
_KEYS = (*_TEXTS, "capability", *_INTEGERS, *_FLOATS, "peak_tensor", "sources")
_LONGEST = {"name": 200, "description": 200, "arch": 200, "sources": 1000}
_FIX = (
    "correct the target file; docs/targets.md has its keys and units, and wpk targets h200 --json "
    "prints a whole one"
)


def load_target(path: Path) -> Target:
    """The target that a file describes.

    Raises:
        TargetError: The file cannot be read, has unknown or missing keys, or absurd values.
    """
    data = _read(path)
    base = data.pop("base", None)
    if base is not None and not isinstance(base, str):
        raise _refusal(path, f"'base' must name a known target, got {base!r}")
    unknown = sorted(set(data) - set(_KEYS))
    if unknown:
        raise _refusal(path, f"unknown keys {', '.join(unknown)}; known: base, {', '.join(_KEYS)}")
    given = {key: _checked(path, key, value) for key, value in data.items()}
    values = _merge(find_target(base) if base is not None else None, given, path)
    target = Target(**values)
    _check_together(target, path)
    return target


def named_target(name: str) -> Target:
    """The target that a user names: by its name, its ``sm_XY``, or a target file.

    Raises:
        TargetError: There is none, or the file does not describe one.
    """
    return load_target(Path(name)) if name.endswith(_SUFFIXES) else find_target(name)


def as_file(target: Target) -> dict[str, Any]:
    """What a file holds that describes a target wholly: loaded, it gives an equal target."""
    described = {key: getattr(target, key) for key in _KEYS}
    return described | {
        "capability": list(target.capability),
        "peak_tensor": {str(precision): peak for precision, peak in target.peak_tensor},
        "sources": dict(target.sources),
    }


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except OSError as error:
        raise TargetError(
            f"target file {path} cannot be read: {error.strerror}", fix="check the path"
        ) from error
    except (
        ValueError,
        RecursionError,
    ) as error:  # both parsers' errors, and bytes that are no text
        raise _refusal(
            path, f"not valid {'TOML' if path.suffix == '.toml' else 'JSON'}: {error}"
        ) from error
    if not isinstance(data, dict):
        raise _refusal(path, f"expected a table of keys, got {type(data).__name__}")
    return data


def _checked(path: Path, key: str, value: Any) -> Any:
    if key in _TEXTS:
        return _text(path, key, value, _LONGEST[key])
    if key == "sources":
        return _sources(path, value)
    if key == "peak_tensor":
        return _peaks(path, value)
    if key == "capability":
        if not isinstance(value, list) or len(value) != 2 or any(type(v) is not int for v in value):
            raise _refusal(path, f"'capability' must be [major, minor], got {value!r}")
        return tuple(value)
    low, high = _INTEGERS.get(key) or _FLOATS[key]
    allowed = (int,) if key in _INTEGERS else (int, float)
    return _number(path, key, value, allowed, (low, high))


def _text(path: Path, key: str, value: Any, longest: int) -> str:
    if not isinstance(value, str) or not value or len(value) > longest:
        raise _refusal(path, f"{key!r} must be a text of 1 to {longest} letters, got {value!r}")
    return value


def _sources(path: Path, value: Any) -> dict[str, str]:
    named = sorted(set(_KEYS) - {"sources"})
    if not isinstance(value, dict) or not set(value) <= set(named):
        raise _refusal(path, f"'sources' must be a table over {named}, got {value!r}")
    return {k: _text(path, f"sources.{k}", v, _LONGEST["sources"]) for k, v in value.items()}


def _number(
    path: Path, key: str, value: Any, allowed: tuple[type, ...], limits: tuple[float, float]
) -> Any:
    if type(value) not in allowed:
        kind = "a whole number" if allowed == (int,) else "a number"
        raise _refusal(path, f"{key!r} must be {kind}, got {value!r}")
    low, high = limits
    if not low <= value <= high:  # nor infinite, nor beyond what a float holds
        raise _refusal(path, f"{key!r} is {value!r}; plausible is {low:g} to {high:g}")
    return value


def _peaks(path: Path, value: Any) -> tuple[tuple[Precision, float], ...]:
    units = {p.value for p in Precision if p is not Precision.FP32 and p.unit is p}
    if not isinstance(value, dict) or not set(value) <= units:
        raise _refusal(path, f"'peak_tensor' must be a table over {sorted(units)}, got {value!r}")
    checked = {
        k: float(_number(path, f"peak_tensor.{k}", v, (int, float), (1e10, 1e17)))
        for k, v in value.items()
    }
    return tuple((p, checked[p.value]) for p in Precision if p.value in checked)


def _merge(base: Target | None, given: dict[str, Any], path: Path) -> dict[str, Any]:
    known: dict[str, Any] = (
        {} if base is None else {f.name: getattr(base, f.name) for f in fields(base)}
    )
    required = [f.name for f in fields(Target) if f.default is MISSING]
    missing = [name for name in required if name not in known and name not in given]
    if missing:
        raise _refusal(path, f"missing keys {', '.join(missing)}, and no 'base' to take them from")
    said = given.get("sources", {})
    own = dict.fromkeys(set(given) - {"name", "arch", "sources"}, f"target file {path.name}")
    sources = dict(known.get("sources", ())) | own | said
    return known | given | {"sources": tuple(sorted(sources.items()))}


def _check_together(target: Target, path: Path) -> None:
    match = _ARCH.fullmatch(target.arch)
    if match is None:
        raise _refusal(path, f"'arch' is {target.arch!r}; the compiler spells it like sm_90a")
    if (int(match[1]), int(match[2])) != target.capability:
        raise _refusal(path, f"'arch' {target.arch} and 'capability' {target.capability} disagree")
    values = asdict(target)
    for part, whole in (
        ("max_shared_block", "max_shared_sm"),
        ("max_threads_block", "max_threads_sm"),
        ("global_bandwidth", "l2_bandwidth"),
    ):
        if values[part] > values[whole]:
            raise _refusal(path, f"{part!r} {values[part]:g} exceeds {whole!r} {values[whole]:g}")


def _refusal(path: Path, what: str) -> TargetError:
    return TargetError(f"target file {path}: {what}", fix=_FIX)
