"""Choices that lie apart are looked at in one lowering, and what is told of them is what each alone would show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import onnx
import pytest

from wpk.dtypes import Precision
from wpk.graph_passes import every_site, pass_of
from wpk.lowering.lowered_model import LoweredModel, Source
from wpk.lowering.model import ModelForms
from wpk.problems import Problem
from wpk.search.forms.form import Form, Forms, difference, form_of, otherwise
from wpk.search.forms.together import Keys, Neighbours, Part, lying_apart, told_apart

A, B = ("pass:a",), ("pass:b",)


def part(nodes: str, problem: str, *touched: str) -> Part:
    """An operator whose nodes have names of one letter, and whose problem is a text."""
    own: Any = problem
    return Part(tuple(nodes), own, frozenset(("value", name) for name in touched))


def row(*operators: str) -> list[Part]:
    """Operators that follow each other; each computes the nodes that it is called after."""
    ends = range(len(operators))
    return [
        part(o, f"does {o}", f"v{n}", f"v{n + 1}") for n, o in zip(ends, operators, strict=True)
    ]


def texts(problems: Iterable[Problem]) -> list[str]:
    return sorted(map(str, problems))


def test_choices_whose_operators_are_no_neighbours_are_looked_at_together() -> None:
    parts = row("ab", "c", "d", "e", "fg")
    nodes: dict[Keys, set[str]] = {A: {"a", "b"}, B: {"f", "g"}}
    assert lying_apart(Neighbours(parts), nodes) == [A, B]
    assert lying_apart(Neighbours(parts), {**nodes, ("pass:c",): {"d"}}) == [A, B]
    assert lying_apart(Neighbours(parts), nodes, most=1) == [A]


@pytest.mark.parametrize("other", [{"b"}, {"c"}, {"d"}])
def test_choices_that_meet_or_have_a_neighbour_in_common_are_not(other: set[str]) -> None:
    parts = row("ab", "c", "d", "e", "fg")
    assert lying_apart(Neighbours(parts), {A: {"a"}, B: other}) == [A]


def test_a_choice_over_nodes_of_no_operator_is_looked_at_alone() -> None:
    parts = row("a", "b", "c", "d")
    assert lying_apart(Neighbours(parts), {A: {"?"}, B: {"d"}}) == [A]
    assert lying_apart(Neighbours(parts), {A: {"a"}, B: {"?"}}) == [A]
    assert lying_apart(Neighbours(parts), {A: {"a"}, B: {"d", "?"}}) == [A]


def test_each_choice_is_told_what_changed_where_it_is() -> None:
    before = row("ab", "c", "d", "fg")
    after = [
        part("a", "does a", "v0", "x"),
        part("b", "does b", "x", "v1"),
        *before[1:3],
        part("fg", "does fg otherwise", "v3", "v4"),
    ]
    told = told_apart(before, after, {A: {"a", "b"}, B: {"f"}, ("pass:c",): {"d"}})
    assert texts(told[A].gone) == ["does ab"]
    assert texts(told[A].new) == ["does a", "does b"]
    assert (texts(told[B].gone), texts(told[B].new)) == (["does fg"], ["does fg otherwise"])
    assert not told[("pass:c",)].gone
    assert not told[("pass:c",)].new


def test_what_ripples_to_a_neighbour_belongs_to_the_choice() -> None:
    before = row("a", "b", "c", "d")
    after = [part("a", "A", "v0", "v1"), part("b", "B", "v1", "v2"), *before[2:]]
    told = told_apart(before, after, {A: {"a"}, B: {"d"}})
    assert texts(told[A].new) == ["A", "B"]
    assert not told[B].new


def test_nothing_is_told_of_two_choices_whose_changes_touch() -> None:
    before = row("a", "b", "c", "d")
    after = [part(n, n.upper(), f"v{i}", f"v{i + 1}") for i, n in enumerate("abc")] + before[3:]
    assert told_apart(before, after, {A: {"a"}, B: {"c"}}) == {}
    shared = [part("a", "does a", "x", "both"), part("b", "does b", "y", "both")]
    changed = [part("a", "A", "x", "both"), part("b", "B", "y", "both")]
    assert told_apart(shared, changed, {A: {"a"}, B: {"b"}}) == {}


def test_nothing_is_told_where_something_changed_that_no_choice_holds() -> None:
    before = row("a", "b", "c", "d", "e")
    after = [part("a", "A", "v0", "v1"), *before[1:4], part("e", "E", "v4", "v5")]
    assert told_apart(before, after, {A: {"a"}}) == {}


def test_problems_that_only_moved_are_no_change() -> None:
    before, after = row("a", "b", "c"), row("a", "b", "c")
    after[0] = part("ab", "does a", "v0", "v1")
    told = told_apart(before, after, {A: {"a"}})
    assert (told[A].gone, told[A].new) == ({}, {})


BLOCK = "c{n} = Conv(y{n}, w)  r{n} = Relu(c{n})  d{n} = Conv(r{n}, w)  y{m} = {op}(d{n})"
OPS = ("Sigmoid", "Tanh", "Softplus", "Elu", "HardSwish", "Abs")


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Callable[[frozenset[str]], LoweredModel]:
    """A chain of blocks that differ, so that each has sites of its own."""
    blocks = "  ".join(BLOCK.format(n=n, m=n + 1, op=op) for n, op in enumerate(OPS))
    model = onnx.parser.parse_model(f"""
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[1, 16, 4, 4] x) => (float[1, 16, 4, 4] z)
        <float[16, 16, 1, 1] w = {{{", ".join(["0.5"] * 256)}}}>
        {{ y0 = Identity(x)  {blocks}  z = Identity(y{len(OPS)}) }}""")
    path = tmp_path_factory.mktemp("forms") / "m.onnx"
    onnx.save(model, path)
    return ModelForms(Source(Path(path), {}, Precision.FP16, ())).lowered


def test_forms_looked_at_among_others_are_what_they_are_alone(
    forms: Callable[[frozenset[str]], LoweredModel],
) -> None:
    lowered: list[frozenset[str]] = []

    def lower(changed: frozenset[str]) -> LoweredModel:
        lowered.append(changed)
        return forms(changed)

    usual = form_of(forms(frozenset()))
    keys: list[Keys] = [(key,) for key in usual.sites]
    together = Forms(lower, usual)
    together.expect(usual, keys)
    told = {each: together.beside(usual, each) for each in keys}
    assert len(keys) >= 2 * len(OPS)
    assert len(lowered) <= len(keys) * 2 / 3
    changes = 0
    for each, form in told.items():
        alone = form_of(forms(frozenset(each)))
        assert form.problems == alone.problems
        assert form.identity == alone.identity
        changes += bool(difference(usual, form).new)
    assert changes >= len(OPS)


def test_a_form_that_is_taken_is_lowered_as_it_is(
    forms: Callable[[frozenset[str]], LoweredModel],
) -> None:
    usual = form_of(forms(frozenset()))
    together = Forms(forms, usual)
    keys: list[Keys] = [(key,) for key in usual.sites]
    together.expect(usual, keys)
    told = [together.beside(usual, each) for each in keys]
    (first, *_) = [form for form in told if not form.sites]
    taken = together.of(first.changed)
    assert taken.sites
    assert taken.problems == first.problems
    assert every_site(pass_of(next(iter(taken.sites)))) not in taken.sites


def test_classes_of_one_lowering_are_told_apart_and_stay_known_beside_another_root(
    forms: Callable[[frozenset[str]], LoweredModel],
) -> None:
    usual = form_of(forms(frozenset()))
    together = Forms(forms, usual)
    own = {(k,): {n for s in each for n in s.nodes} for k, each in usual.sites.items()}
    keys = [key for (key,) in lying_apart(Neighbours(usual.parts), own)]
    together.all_of(usual, tuple(keys))
    told = [key for key in keys if together.has(frozenset({key}))]
    assert len(told) >= 2
    for key in told:
        alone = form_of(forms(frozenset({key})))
        assert together.beside(usual, (key,)).problems == alone.problems
    first, *others = told
    root = together.of(frozenset({first}))
    together.begin_with(root)
    kept = [key for key in others if together.has(frozenset({first, key}))]
    assert kept
    for key in kept:
        both = form_of(forms(frozenset({first, key})))
        assert together.beside(root, (key,)).problems == both.problems
    assert together.beside(root, (first,)).problems == usual.problems


def test_choices_are_decided_otherwise_than_in_the_form_that_they_are_tried_on() -> None:
    base, best = (Form(frozenset(each), Counter(), 0, {}) for each in ("ab", "bc"))
    assert otherwise(base, "a") == {"b"}
    assert otherwise(base, "c") == {"a", "b", "c"}
    assert otherwise(best, "a", than=base) == {"b", "c"}  # it was decided so already
    assert otherwise(best, "bc", than=base) == {"c"}
