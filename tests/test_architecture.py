"""Walk every import, also those inside functions, and fail on an arrow that points up.

docs/architecture.md shows the same picture. A room is a module or sub-package directly under `wpk`
or `wpk.search`; it may import rooms below it and itself, and no two modules may import each other in a circle.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"wpk": "wpk", "wpk.graph_passes": "graph_passes", "wpk.search": "search"}

FLOORS = [
    {"errors"},
    {
        "beside",
        "blocks",
        "reused_memory",
        "strided",
        "target_features",
        "candidate",
        "closed_models",
        "codec",
        "control_flow",
        "did_you_mean",
        "dims",
        "dtypes",
        "error_function",
        "expression",
        "expression_operations",
        "execution",
        "extent",
        "file_arrays",
        "file_kinds",
        "free_memory",
        "free_shapes",
        "garbage",
        "kernel_source",
        "launch",
        "learning_functions",
        "model_checks",
        "operators",
        "options",
        "phases",
        "problems",
        "progress",
        "shape_ranges",
        "tensor_maps",
        "trial",
        "version",
    },
    {"targets", "process", "external_data"},
    {"performance"},
    {"schedules", "kernels"},
    {"loading", "graph_passes", "model_source"},
    {"lowering"},
    {"build"},
    {"emulator", "device"},
    {"nvinfer", "runtime", "spec"},
    {"libraries"},
    {"backends"},
    {"plan"},
    {"engine", "tensorrt"},
    {"search.searchers", "search.models", "search.store"},
    {"search.forms"},
    {"assembly"},
    {"checks"},
    {"trial_bench"},
    {"search.loop"},
    {"report"},
    {"pipeline"},
    {"tensorrt_pipeline", "commands"},
    {"cli"},
    {"__main__"},
]
"""From the ground up; rooms on one floor above the ground types do not know each other."""

GROUND = FLOORS[1]
NARROW = {"graph_passes": {"errors", *GROUND}}
"""Rooms that may import less than everything below them."""

OPEN = {
    "cli": {"main"},
    "lowering": {"flat_graph", "lowered_model", "model", "program"},
    "problems": {"signs"},
}
"""Modules that other rooms import by name: importing the room's door, its ``__init__``, would load more
than they need. All other rooms have doors only."""

FACADE = "wpk"
"""`wpk/__init__.py` offers `wpk.optimize` and `wpk.load`, imported on first use: the one arrow up. No
module imports it."""


def _modules(root: Path) -> dict[str, Path]:
    """Every module of the package by its installed name."""
    found = {}
    for name, folder in FOLDERS.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = [name, *path.relative_to(root / folder).with_suffix("").parts]
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


@cache
def _statements(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every import statement anywhere in a file, which is read once for all tests."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return tuple(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))


def _imports(path: Path, modules: dict[str, Path]) -> Iterator[tuple[int, str]]:
    """(line, module of wpk) for every import statement anywhere in a file."""
    for node in _statements(path):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif node.level == 0 and node.module is not None:
            whole = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else node.module for name in whole]
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.split(".")[0] == "wpk")


def _room(module: str) -> str:
    """The room of a module; `search` holds several."""
    parts = module.split(".")
    if parts[1:2] == ["search"]:
        return ".".join(parts[1:3])
    return parts[1] if len(parts) > 1 else module


def _floor(room: str) -> int | None:
    return next((number for number, rooms in enumerate(FLOORS) if room in rooms), None)


def _why_forbidden(importer: str, imported: str) -> str | None:
    """Why a module may not import another, in words; None if it may."""
    if importer == FACADE:
        return None
    if imported == FACADE:
        return "it is the face for others; the version is in wpk.version"
    source, target = _room(importer), _room(imported)
    for room in (source, target):
        if _floor(room) is None:
            return f"{room!r} has no floor: give it one in {Path(__file__).name}"
    if source == target or target in NARROW.get(source, ()):
        return None
    if source in NARROW:
        return f"{source} may import only {', '.join(sorted(NARROW[source]))}"
    below, above = _floor(target) or 0, _floor(source) or 0
    if below < above or (below == above and {source, target} <= GROUND):
        return None
    return f"{source} lies below or beside {target}"


def _wrong_arrows(root: Path) -> list[str]:
    modules = _modules(root)
    return [
        f"{path.relative_to(root)}:{line}: imports {imported}: {reason}"
        for importer, path in modules.items()
        for line, imported in _imports(path, modules)
        if (reason := _why_forbidden(importer, imported)) is not None
    ]


def _past_the_door(root: Path) -> list[str]:
    """Imports of what stands in a room from outside of it, and not through its door."""
    modules = _modules(root)
    doors = {name for name, path in modules.items() if path.name == "__init__.py"}
    found = []
    for importer, path in modules.items():
        for node in _statements(path):
            if not isinstance(node, ast.ImportFrom) or node.module not in modules:
                continue
            room, name = _room(node.module), node.module.rpartition(".")[2]
            inside = _room(importer) == room or importer == FACADE
            is_ground = node.module.count(".") == 1
            if not (inside or is_ground or node.module in doors or name in OPEN.get(room, ())):
                found.append(f"{path.relative_to(root)}:{node.lineno}: imports {node.module}")
    return found


def _circles(root: Path) -> list[list[str]]:
    """Circles among modules, by a depth-first walk; one circle for each arrow that closes one."""
    modules = _modules(root)
    arrows = {
        importer: sorted({name for _, name in _imports(path, modules)} - {importer})
        for importer, path in modules.items()
        if importer != FACADE
    }
    circles: list[list[str]] = []
    done: set[str] = set()

    def walk(module: str, way: list[str]) -> None:
        if module in way:
            circles.append([*way[way.index(module) :], module])
        elif module not in done:
            for imported in arrows.get(module, ()):
                walk(imported, [*way, module])
            done.add(module)

    for module in arrows:
        walk(module, [])
    return circles


def _plant(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_no_arrow_points_up() -> None:
    assert not _wrong_arrows(ROOT)


def test_rooms_are_entered_by_their_doors() -> None:
    assert _past_the_door(ROOT) == []


def test_who_does_not_use_the_door_is_found(tmp_path: Path) -> None:
    files = {
        "wpk/plan/__init__.py": "from wpk.plan.plan import Plan",
        "wpk/plan/plan.py": "class Plan: ...",
        "wpk/engine/engine.py": "from wpk.plan.plan import Plan",
        "wpk/trial_bench/bench.py": "from wpk.plan import Plan",
    }
    (found,) = _past_the_door(_plant(tmp_path, files))
    assert found == "wpk/engine/engine.py:1: imports wpk.plan.plan"


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert not _circles(ROOT)


def test_no_import_is_relative() -> None:
    for path in _modules(ROOT).values():
        for node in _statements(path):
            assert not (isinstance(node, ast.ImportFrom) and node.level), path


def test_the_picture_in_the_docs_names_every_room() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rooms = {_room(module) for module in _modules(ROOT)} - {FACADE, "__main__", "search"}
    assert not {room for room in rooms if f"`wpk.{room}`" not in text}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        (
            {"wpk/errors.py": "def f():\n    from wpk.dims import DimExpr\n", "wpk/dims.py": ""},
            "wpk/errors.py:2: imports wpk.dims: errors lies below or beside dims",
        ),
        (
            {"wpk/build/pool.py": "import wpk.emulator.child", "wpk/emulator/child.py": ""},
            "build lies below or beside emulator",
        ),
        (
            {"graph_passes/x.py": "from wpk import schedules", "wpk/schedules/__init__.py": ""},
            "graph_passes may import only",
        ),
        (
            {"wpk/device/a.py": "from wpk.emulator import b", "wpk/emulator/b.py": ""},
            "device lies below or beside emulator",
        ),
        ({"wpk/utils.py": "", "wpk/cli/x.py": "import wpk.utils"}, "'utils' has no floor"),
        ({"wpk/cli/x.py": "import wpk"}, "imports wpk: it is the face for others"),
        ({"wpk/cli/x.py": "from wpk import __version__"}, "imports wpk: it is the face for others"),
    ],
)
def test_a_planted_wrong_arrow_is_found(tmp_path: Path, files: dict[str, str], words: str) -> None:
    (found,) = _wrong_arrows(_plant(tmp_path, files))
    assert words in found


def test_a_planted_circle_is_found(tmp_path: Path) -> None:
    _plant(tmp_path, {"search/a.py": "import wpk.search.b", "search/b.py": "import wpk.search.a"})
    assert ["wpk.search.a", "wpk.search.b", "wpk.search.a"] in _circles(tmp_path)


def test_allowed_arrows_are_allowed(tmp_path: Path) -> None:
    files = {
        "wpk/__init__.py": "def f():\n    from wpk.pipeline import g\n",
        "wpk/pipeline.py": "from wpk.version import VERSION\nfrom wpk.graph_passes import x",
        "wpk/dims.py": "from wpk.errors import WpkError",
        "wpk/extent.py": "from wpk.dims import DimExpr",
        "wpk/errors.py": "",
        "graph_passes/x.py": "from wpk.dims import DimExpr",
    }
    assert not _wrong_arrows(_plant(tmp_path, files))
    assert not _circles(tmp_path)


def test_shared_device_headers_do_not_include_templates() -> None:
    for path in (ROOT / "wpk" / "kernels").rglob("*.cuh"):
        included = re.findall(r"#\s*include\s+<wpk/(\w+)/", path.read_text(encoding="utf-8"))
        assert set(included) <= {"kernels", "emulator"}, path


def test_templates_hold_no_assembly_and_include_only_portable_headers() -> None:
    for path in (ROOT / "wpk" / "schedules").rglob("*.cuh"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\b(asm|__asm__)\b", text), path
        included = re.findall(r"#\s*include\s+[<\"]([^>\"]+)", text)
        assert not [name for name in included if not re.match(r"wpk/(kernels|schedules)/", name)], (
            path
        )


_GENERIC_LAMBDA = re.compile(r"\[[^\[\]]*\]\s*\([^()]*\bauto\b")


def test_no_lambda_of_a_header_is_generic() -> None:
    """NVRTC of CUDA 13.0 takes one for a function of the host, and compiles no kernel that has it."""
    assert _GENERIC_LAMBDA.search("const auto window = [=](const auto& rows)")
    assert not _GENERIC_LAMBDA.search("const auto patch = [=](int index)")
    for path in (ROOT / "wpk").rglob("*.cuh"):
        assert not _GENERIC_LAMBDA.search(path.read_text(encoding="utf-8")), path
