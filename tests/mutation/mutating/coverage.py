"""Which modules are mutated, and which tests must notice: the nearest first, then wider ones."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

Stage = tuple[str, ...]
"""Arguments for pytest."""


@dataclass(frozen=True)
class Covered:
    """Modules of a folder and the tests that hold them.

    Attributes:
        folder: Of the modules.
        modules: Patterns of their names.
        tests: Folder of their tests; ``test_MODULE.py`` is asked first where there is one.
        nearest: For modules that have no such test, or for which it is not enough: names of tests.
        wider: Asked last, one stage after the other until a test fails.
    """

    folder: str
    modules: tuple[str, ...]
    tests: str
    nearest: dict[str, tuple[str, ...]]
    wider: tuple[Stage, ...]


COVERED = (
    Covered(
        "wpk/checks",
        ("*",),
        "tests/checks",
        {
            "allowed": ("prepared", "verification"),
            "body": ("by_sample", "undecided", "verification"),
            "bounded": ("error_bounds", "undecided"),
            "chain": ("by_sample",),
            "error_bounds": ("undecided",),
            "evaluation": ("pass_check", "second_opinion"),
            "float64_nodes": ("pass_check", "by_sample", "second_opinion"),
            "matrix_rows": ("stretches",),
            "operator_check": ("verification", "prepared"),
            "operator_reference": ("verification", "in_turn"),
            "original_values": ("pass_check", "pass_proof"),
            "region": ("prepared", "verification"),
            "windows": ("by_sample",),
            "witness": ("testimony",),
        },
        (
            ("tests/checks", "--ignore=tests/checks/test_planted_passes.py"),
            ("tests/fuzz/test_operators.py",),
            ("tests/checks/test_planted_passes.py", "-k", "not changes_an_output"),
        ),
    ),
    Covered(
        "wpk/checks/reference",
        ("*",),
        "tests/checks/reference",
        {"*": ("operators",)},
        (
            ("tests/checks/test_second_opinion.py", "tests/checks/test_verification.py"),
            ("tests/checks", "--ignore=tests/checks/test_planted_passes.py"),
            ("tests/fuzz/test_operators.py",),
        ),
    ),
    Covered(
        "wpk/checks/bounds",
        ("*",),
        "tests/checks/bounds",
        {},
        (
            ("tests/checks/test_error_bounds.py", "tests/checks/test_verification.py"),
            ("tests/checks", "--ignore=tests/checks/test_planted_passes.py"),
            ("tests/fuzz/test_operators.py",),
        ),
    ),
    Covered(
        "wpk/plan",
        ("container*", "fields", "memory", "plan_file", "regions", "weights_file"),
        "tests/plan",
        {
            "container*": ("plan_file",),
            "fields": ("hostile_fields",),
            "memory": ("order",),
            "weights_file": ("plan_file",),
        },
        (
            ("tests/plan",),
            ("tests/fuzz/test_plans.py",),
            ("tests/engine", "tests/trial_bench", "tests/search/loop"),
        ),
    ),
    Covered(
        "wpk/plan/checks",
        ("*",),
        "tests/plan",
        {"*": ("hostile_fields", "launch_checks", "choice_checks", "problem_checks", "evidence")},
        (("tests/plan",), ("tests/fuzz/test_plans.py",), ("tests/engine",)),
    ),
    Covered("wpk", ("codec",), "tests/plan", {}, (("tests/plan",), ("tests/fuzz/test_plans.py",))),
    Covered(
        "wpk/problems",
        ("*",),
        "tests/problems",
        {"*": ("accesses", "traffic", "words", "features", "odd_siblings")},
        (
            ("tests/problems",),
            ("tests/plan/test_problem_checks.py", "tests/plan/test_order.py", "tests/performance"),
            ("tests/libraries", "tests/trial_bench", "tests/checks/test_prepared.py"),
        ),
    ),
    Covered(
        "wpk/lowering",
        ("memory_map",),
        "tests/lowering",
        {"memory_map": ("lower", "split_placement")},
        (
            ("tests/lowering",),
            ("tests/plan", "tests/engine"),
            ("tests/checks/test_verification.py",),
        ),
    ),
    Covered(
        "wpk/performance",
        ("bound", "work", "estimate"),
        "tests/performance",
        {},
        (("tests/performance",), ("tests/search",), ("tests/schedules", "-k", "spaces")),
    ),
)


def modules(root: Path) -> list[str]:
    """The paths of all modules that are mutated, in order."""
    patterns = [f"{each.folder}/{name}.py" for each in COVERED for name in each.modules]
    paths = {path.relative_to(root).as_posix() for p in patterns for path in root.glob(p)}
    return sorted(paths)


def stages(root: Path, module: str, *, wider: bool = True) -> list[Stage]:
    """The tests of a module, those to be asked first in front; with ``wider`` also those far away."""
    path = Path(module)
    covered = next(
        each
        for each in COVERED
        if each.folder == path.parent.as_posix()
        and any(fnmatch(path.stem, n) for n in each.modules)
    )
    near = (
        n
        for pattern, names in covered.nearest.items()
        if fnmatch(path.stem, pattern)
        for n in names
    )
    named = dict.fromkeys(f"{covered.tests}/test_{name}.py" for name in (path.stem, *near))
    nearest = [(each,) for each in named if (root / each).exists()]
    return [*nearest, *covered.wider] if wider or not nearest else nearest
