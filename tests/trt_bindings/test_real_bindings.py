"""All that wpk uses of TensorRT exists in NVIDIA's bindings of 10 and 11, and takes as many arguments."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest
from trt_bindings.real_bindings import ROOT, VERSIONS, names_of
from trt_bindings.uses import RTX_ONLY, Use, uses_in, uses_of

from wpk.nvinfer import ELEMENT_TYPES
from wpk.tensorrt.configuration import HARDWARE_LEVELS

FOLDERS = [
    ROOT / "wpk" / name for name in ("nvinfer", "tensorrt", "tensorrt_pipeline", "libraries")
]


@pytest.fixture(scope="module", params=VERSIONS)
def names(request: pytest.FixtureRequest) -> dict[str, Any]:
    return names_of(request.param)


def missing(uses: list[Use], names: dict[str, Any]) -> list[str]:
    """What does not exist, or takes another number of arguments."""
    return [said for use in uses for said in _faults(use, names)]


def _faults(use: Use, names: dict[str, Any]) -> Iterator[str]:
    found: Any = {"members": names, "doc": ""}
    for depth, name in enumerate(use.path):
        members = found["members"]
        if not members and depth:  # what a property gives is not described
            return
        if name not in members:
            yield f"{use.where}: {'.'.join(use.path)}"
            return
        found = members[name]
    if use.arguments is not None and not _takes(found["doc"], use):
        yield f"{use.where}: {'.'.join(use.path)} with {use.arguments} arguments"


def _takes(doc: str, use: Use) -> bool:
    """Whether a form of the function takes so many arguments; yes where its text lists none."""
    pattern = rf"\b{use.path[-1]}\((self[^)]*?)?((?:[^()]|\([^()]*\))*)\) ->"
    forms = [match.group(0) for match in re.finditer(pattern, doc)]
    if not forms:
        return True
    return any(low <= use.arguments <= high for low, high in map(_arity, forms))  # type: ignore[operator]


def _arity(form: str) -> tuple[int, int]:
    inside = form[form.index("(") + 1 : form.rindex(")")]
    depth, parts = 0, [""]
    for letter in inside:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    named = [part.strip() for part in parts if part.strip() and not part.strip().startswith("self")]
    optional = sum("=" in part or part.startswith("*") for part in named)
    return len(named) - optional, len(named)


def test_all_uses_exist(names: dict[str, Any]) -> None:
    uses = uses_of(FOLDERS, ROOT)
    assert len(uses) > 80
    assert len({use.path for use in uses}) > 60
    checked = [use for use in uses if not RTX_ONLY & set(use.path)]
    assert not missing(checked, names)
    left_out = {part for use in uses for part in use.path} & RTX_ONLY
    assert left_out == RTX_ONLY, "an exception that nobody needs"


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("config.set_flagg(1)", "IBuilderConfig.set_flagg"),
        ("module.BuilderFlag.FP17", "BuilderFlag.FP17"),
        ("kinds = module.PluginFieldType\nkinds.INT9", "PluginFieldType.INT9"),
        ("_member(binding, 'BuilderFlag', 'TF33')", "BuilderFlag.TF33"),
        ("context.set_input_shape('x')", "IExecutionContext.set_input_shape with 1 arguments"),
        ("class P(module.IProfiler):\n    def report(self): ...", "IProfiler.report"),
        ("binding.module.Bilder(1)", "Bilder"),
    ],
)
def test_a_wrong_use_is_found(names: dict[str, Any], source: str, fault: str) -> None:
    (said,) = missing(list(uses_in(source, "wpk/tensorrt/build.py")), names)
    assert said.endswith(fault)


def test_the_enums_that_options_name_exist(names: dict[str, Any]) -> None:
    types = names["DataType"]["members"]
    assert set(ELEMENT_TYPES) <= set(types)
    levels = set(names["HardwareCompatibilityLevel"]["members"])
    newer = {"SAME_COMPUTE_CAPABILITY"}  # which 10.3 lacks, and an error says so
    assert set(HARDWARE_LEVELS.values()) - newer <= levels


def test_no_number_of_tensorrts_is_stored() -> None:
    """Flags are asked for by name: a literal number never goes to what takes a flag or an enum."""
    takers = {
        "set_flag",
        "clear_flag",
        "get_flag",
        "set_memory_pool_limit",
        "get_engine_information",
    }
    for folder in FOLDERS:
        for path in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                function = getattr(node, "func", None)
                if getattr(function, "attr", "") in takers and node.args:  # type: ignore[attr-defined]
                    first = node.args[0]  # type: ignore[attr-defined]
                    assert not isinstance(first, ast.Constant), path
