"""What is counted about the code's shape, on a small house that has one of each."""

from pathlib import Path

import house
import pytest

FILES = {
    "wpk/__init__.py": "",
    "wpk/plans/__init__.py": "",
    "wpk/plans/plan.py": "class Step: ...\nclass Found: ...\nclass Speed: ...\n",
    "wpk/plans/checks.py": "from wpk.plans.plan import Step\n",
    "wpk/report/words.py": """\
from wpk.plans import plan
from wpk.plans.checks import Step as Other
from wpk.search.record import Tried
def words(problem, choice):
    if isinstance(choice, LibraryChoice):
        return "library"
    match problem:
        case Convolution():
            return "Tanh"
        case Pooling():
            return "x"
""",
    "search/record.py": "import json\nclass Tried: ...\nclass Step: ...\n",
    "graph_passes/gelu.py": "NAMES = ('Tanh', 'Erf')\ndef long():\n" + "    x = 1\n" * 40,
}


@pytest.fixture
def modules(tmp_path: Path) -> list[house.Module]:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(house.read_modules(tmp_path))


def test_modules_are_called_as_they_are_installed(modules: list[house.Module]) -> None:
    assert {each.name: each.room for each in modules} == {
        "wpk": "",
        "wpk.plans": "plans",
        "wpk.plans.plan": "plans",
        "wpk.plans.checks": "plans",
        "wpk.report.words": "report",
        "wpk.search.record": "search",
        "wpk.graph_passes.gelu": "graph_passes",
    }


@pytest.mark.parametrize(
    ("count", "figure", "counted"),
    [
        (house.doors, "3", ["plans: 2 of 3", "search: 1 of 1"]),
        (house.imports, "3", None),
        (
            house.library_questions,
            "1",
            ["wpk/report/words.py:5: if isinstance(choice, LibraryChoice):"],
        ),
        (house.tanh_tables, "2", ["wpk/report/words.py", "graph_passes/gelu.py"]),
        (house.problem_switches, "1", ["wpk/report/words.py"]),
        (house.long_functions, "1", ["graph_passes/gelu.py:2: long, 41"]),
        (house.double_names, "1", ["Step: wpk/plans/plan.py, search/record.py"]),
        (
            house.participles,
            "2",
            ["wpk/plans/plan.py:2: Found", "search/record.py:2: Tried"],
        ),
        (house.lines, "60", []),
    ],
)
def test_each_is_counted(
    modules: list[house.Module], count: object, figure: str, counted: list[str] | None
) -> None:
    found = count(modules)  # type: ignore[operator]
    assert found.figure == figure
    assert counted is None or list(found.counted) == counted
