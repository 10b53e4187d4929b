"""What an engine of TensorRT is, from the JSON beside it: for the terminal."""

from collections.abc import Mapping
from typing import Any

from wpk.report.blocks import Block, Table
from wpk.report.text import byte_size

_MICRO = 1e6


def engine_text(told: Mapping[str, Any]) -> list[Block]:
    """Describe an engine.

    Args:
        told: What `wpk.tensorrt.describe` gives, with checks and choices where there are any.

    Raises:
        KeyError: It is something else.
    """
    made, target = told["tensorrt"], told["target"]
    product = f"TensorRT{' for RTX' if made['rtx'] else ''} {made['version']}"
    size = byte_size(told["engine"]["bytes"])
    blocks: list[Block] = [
        f"{told['origin']['model']}: engine of {product} for {target['name']}, {told['precision']}, {size}"
    ]
    blocks.append(
        Table(
            ["tensor", "", "type", "shape"],
            [
                [each["name"], role, each["type"], "x".join(map(str, each["shape"]))]
                for role, side in (("input", "inputs"), ("output", "outputs"))
                for each in told[side]
            ],
        )
    )
    choices = told.get("choices")
    if choices is not None:
        blocks += _choices(choices)
    tuned = [each for each in told.get("tuned") or () if each["tactics"]]
    if tuned:
        header = ["TensorRT timed", "of operators", "candidates", "took", "µs"]
        blocks.append(Table(header, list(map(_tuned, tuned))))
    left = told.get("no_plugin") or {}
    if left:
        blocks.append(Table(["left to TensorRT", "because"], [list(each) for each in left.items()]))
    checks = told.get("checks") or []
    blocks.append(
        Table(
            ["check", "", "found"],
            [[each["name"], each["outcome"], each["detail"]] for each in checks],
        )
        if checks
        else "not checked"
    )
    return blocks


def _choices(choices: Mapping[str, Any]) -> list[Block]:
    groups = Table(
        ["operators", "TensorRT µs", "wpk µs", "copies µs", "noise µs", "chosen", "why"],
        [
            [
                " + ".join(each["operators"]),
                *(
                    _micro(each[f"{what}_seconds"])
                    for what in ("native", "plugin", "reformat", "noise")
                ),
                "wpk" if each["chosen"] == "plugin" else "TensorRT",
                each["why"],
            ]
            for each in choices["groups"]
        ],
        ("noise µs", "copies µs", "why"),
    )
    if not choices["rebuilds"]:
        return [groups]
    rebuilds = Table(
        ["whole engine with", "µs", "best before µs", "noise µs", "kept", "why"],
        [
            [
                f"{len(each['replaced'])} plugins",
                *(_micro(each[f"{what}seconds"]) for what in ("", "rival_", "noise_")),
                "yes" if each["accepted"] else "no",
                each["why"],
            ]
            for each in choices["rebuilds"]
        ],
    )
    return [groups, rebuilds]


def _tuned(tuned: Mapping[str, Any]) -> list[object]:
    tactics = tuned["tactics"]
    taken = next((each for each in tactics if each["digest"] == tuned["selected"]), None)
    kernel, seconds = ("", None) if taken is None else (taken["kernel"], taken["seconds"])
    return [tuned["name"], ", ".join(tuned["operators"]), len(tactics), kernel, _micro(seconds)]


def _micro(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * _MICRO:.1f}"
