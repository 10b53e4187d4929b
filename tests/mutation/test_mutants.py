"""What is drawn as a mutant, what is left out, and that tests are asked about the changed module."""

import ast
import random
from pathlib import Path

import pytest
from mutating.coverage import modules, stages
from mutating.main import ROOT, drawn
from mutating.mutants import mutants_of
from mutating.trial import Limits, copied

MODULE = '''"""A docstring with 1 + 1."""

__all__ = ["limit"]
LARGEST: "dict[int, 3]" = 4


def limit(x: int, names: list[str]) -> int | None:
    """Never more than 4."""
    assert x > -1
    if x <= LARGEST and any(names):
        raise ValueError(f"{x + 1} is more than {LARGEST * 2}")
    names.append("a")
    x += 2
    return min(x, LARGEST - 1)
'''
EXPECTED = {
    "4 -> 5",
    "<= -> <",
    "and -> or",
    "any -> all",
    "x <= LARGEST and any(names) -> not (x <= LARGEST and any(names))",
    'raise ValueError(f"{x + 1} is more than {LARGEST * 2}") -> pass',
    'names.append("a") -> pass',
    "+ -> -",
    "x += 2 -> pass",
    "2 -> 3",
    "min -> max",
    "- -> +",
    "1 -> 2",
    "min(x, LARGEST - 1) -> None",
}


def test_code_is_changed_and_what_people_read_is_not(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text(MODULE)
    found = mutants_of(tmp_path, "module.py")
    assert {f"{each.old} -> {each.new}" for each in found} == EXPECTED
    assert len(found) == len(EXPECTED)
    for each in found:
        ast.parse(each.applied(MODULE.encode()))


def test_every_mutant_of_the_product_can_be_parsed() -> None:
    everything = [m for path in modules(ROOT) for m in mutants_of(ROOT, path)]
    assert len({each.name for each in everything}) == len(everything) > 3000
    for each in random.Random(0).sample(everything, 200):
        ast.parse(each.applied((ROOT / each.path).read_bytes()))


def test_a_seed_draws_the_same_and_shards_are_its_parts() -> None:
    chosen = drawn(3, 20)
    assert chosen == drawn(3, 20) != drawn(4, 20)
    assert drawn(3, 20, only=chosen[0].path)[0] == chosen[0]


def test_every_module_has_tests_that_exist() -> None:
    for module in modules(ROOT):
        for path in (name for stage in stages(ROOT, module) for name in stage):
            assert not path.startswith("tests/") or (ROOT / path).exists(), path


@pytest.mark.slow
def test_a_mutant_is_killed_by_the_tests_of_its_module_and_leaves_nothing_behind(
    tmp_path: Path,
) -> None:
    mutant = next(m for m in mutants_of(ROOT, "wpk/plan/regions.py") if m.kind == "return")
    (copy,), limits = copied(ROOT, tmp_path, 1), Limits()
    assert copy.tried(mutant, limits).killed
    assert copy.test(stages(ROOT, mutant.path)[0], None)[0] == 0
