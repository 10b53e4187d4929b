"""The static search: what is compiled, what is refused, what is chosen."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from support.plans.quick_search import compile_one
from support.plans.warm import Warm

from wpk.build import Compilation, KernelResources
from wpk.errors import ScheduleError
from wpk.kernel_source import KernelSource
from wpk.performance.work import SharedAccess
from wpk.problems import Matmul
from wpk.progress import silent
from wpk.search.models.kernel_choice import KernelChoice
from wpk.search.models.model_search import search_model
from wpk.search.models.static_search import (
    FINALISTS,
    check_skips,
    least_seconds,
    shortlist_all,
)
from wpk.targets.registry import find_target
from wpk.targets.target import Target

H200 = find_target("h200")
Make = Callable[[int, int, int], Matmul]


def static_search(
    problem: Matmul, templates: Sequence[Any], target: Target, compiler: Any
) -> KernelChoice:
    """What the models choose for one problem."""
    static = search_model([problem], templates, target, compiler.compile, silent)
    return static.kernels[problem]


def _resources(registers: int = 96, spilled: int = 0) -> KernelResources:
    return KernelResources(registers, 0, 0, spilled, spilled)


def test_the_best_eight_are_compiled_and_the_best_of_them_chosen(
    tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    compiler = make_compiler(lambda text: _resources())
    problem = make_product(512, 512, 256)
    choice = static_search(problem, [tiled], H200, compiler)
    assert [len(sources) for sources in compiler.rounds] == [FINALISTS]
    best = shortlist_all(problem, [tiled], H200).finalists()[0]
    assert choice.finalist.prediction.schedule == best.prediction.schedule
    assert choice.finalist.launches == best.launches
    assert choice.finalist.prediction.estimate >= choice.bound.seconds
    (funnel,) = choice.funnels
    assert (funnel.space, funnel.kept, funnel.compiled) == (216, 24, 8)
    assert 0 < funnel.kept <= funnel.legal < funnel.space
    assert funnel.refusal == ""
    assert not any(each.spills for each in choice.resources)


@contextmanager
def _one_finalist() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        compile_one(patch)
        yield


@pytest.mark.parametrize("way", [_one_finalist, lambda: Warm(finalists=1)], ids=["one", "warm"])
def test_a_quick_search_compiles_the_best_alone(
    way: Callable[[], AbstractContextManager[object]],
    tiled: Any,
    make_product: Make,
    make_compiler: Any,
) -> None:
    compiler = make_compiler(lambda text: _resources())
    with way():
        static_search(make_product(512, 512, 256), [tiled], H200, compiler)
    assert [len(sources) for sources in compiler.rounds] == [1]


def test_a_spilling_kernel_is_passed_over(
    tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    problem = make_product(512, 512, 256)
    best, second = shortlist_all(problem, [tiled], H200).finalists(count=2)
    compiler = make_compiler(
        lambda text: _resources(255, 64) if text == best.sources[0].text else _resources()
    )
    choice = static_search(problem, [tiled], H200, compiler)
    assert choice.finalist.prediction.schedule == second.prediction.schedule


def test_what_does_not_compile_is_passed_over(
    tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    problem = make_product(512, 512, 256)
    best = shortlist_all(problem, [tiled], H200).finalists(count=1)[0]
    compiler = make_compiler(
        lambda text: "too many cooks" if text == best.sources[0].text else _resources()
    )
    choice = static_search(problem, [tiled], H200, compiler)
    assert choice.finalist.prediction.schedule != best.prediction.schedule


def test_the_compilers_registers_decide_whether_a_block_fits(
    make_tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    # 256 x 256 tiles: 1024 threads, which 65536 registers serve with 64 each. The template
    # guesses 100; the compiler's word counts.
    problem, template = make_product(4096, 4096, 256), make_tiled(sizes=(256,))
    choice = static_search(problem, [template], H200, make_compiler(lambda text: _resources(64)))
    assert choice.finalist.prediction.estimate < 1
    with pytest.raises(ScheduleError, match="not one of its blocks fits an SM"):
        static_search(problem, [template], H200, make_compiler(lambda text: _resources(80)))


def test_more_are_compiled_only_when_the_first_eight_are_refused(
    make_tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    problem = make_product(512, 512, 256)
    templates = [make_tiled(name="first"), make_tiled(name="second")]
    doomed = {f.sources[0].text for f in shortlist_all(problem, templates, H200).finalists()}
    compiler = make_compiler(lambda text: _resources(spilled=8 if text in doomed else 0))
    choice = static_search(problem, templates, H200, compiler)
    assert len(compiler.rounds) == 2
    assert sum(each.compiled for each in choice.funnels) == 16
    assert not any(each.spills for each in choice.resources)


def test_a_spilling_kernel_is_chosen_where_all_spill(
    tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    compiler = make_compiler(lambda text: _resources(spilled=16))
    choice = static_search(make_product(512, 512, 256), [tiled], H200, compiler)
    assert [each.spill_store_bytes for each in choice.resources] == [16]


def test_nothing_that_compiles_is_an_error_with_the_reasons(
    tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    compiler = make_compiler(lambda text: "no such unit")
    with pytest.raises(ScheduleError, match="wpk_tiled failed to compile: no such unit") as caught:
        static_search(make_product(512, 512, 256), [tiled], H200, compiler)
    assert "none of 24 schedules" in caught.value.what
    assert "limits" in caught.value.fix


def test_templates_compete_and_ties_go_to_the_first(
    make_tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    problem = make_product(512, 512, 256)
    coarse, fine = make_tiled(sizes=(256,), name="coarse"), make_tiled(name="fine")
    compiler = make_compiler(lambda text: _resources())
    choice = static_search(problem, [coarse, fine], H200, compiler)
    assert choice.finalist.template.name == "fine"
    assert [each.template for each in choice.funnels] == ["coarse", "fine"]
    twins = [make_tiled(name="one"), make_tiled(name="two")]
    tied = static_search(problem, twins, H200, make_compiler(lambda text: _resources()))
    assert tied.finalist.template.name == "one"


def test_templates_that_refuse_are_recorded_and_others_go_on(
    tiled: Any, make_tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    problem = make_product(512, 512, 256)
    none_legal = make_tiled(sizes=(1,), name="tiny")
    choice = static_search(
        problem, [none_legal, tiled], H200, make_compiler(lambda text: _resources())
    )
    (refusal,) = (each for each in choice.funnels if each.refusal)
    assert (refusal.template, refusal.refusal) == ("tiny", "none of its 6 schedules is legal")


def test_a_problem_nobody_carries_is_refused_in_words(tiled: Any, make_product: Make) -> None:
    with pytest.raises(ScheduleError, match="tiled: k must be even"):
        shortlist_all(make_product(64, 64, 63), [tiled], H200)
    with pytest.raises(ScheduleError, match="none is of its kind"):
        shortlist_all(make_product(64, 64, 64), [], H200)


def test_a_template_that_is_left_out_is_not_asked_and_says_why(
    tiled: Any, make_tiled: Any, make_product: Make
) -> None:
    class Broken(type(tiled)):  # type: ignore[misc]
        def why_not(self, problem: Matmul, target: Any) -> str | None:
            raise AssertionError("it was left out")

    problem, broken = make_product(64, 64, 64), Broken(name="broken")
    prepared = shortlist_all(problem, [broken, tiled], H200, skip=("broken",))
    assert [each.template.name for each in prepared.templates] == ["tiled"]
    assert [(r.template, r.refusal) for r in prepared.refusals] == [
        ("broken", "left out on request")
    ]
    with pytest.raises(AssertionError, match="it was left out"):
        shortlist_all(problem, [broken, tiled], H200, skip=("other",))


def test_with_all_templates_left_out_the_error_says_what_to_do(
    tiled: Any, make_tiled: Any, make_product: Make
) -> None:
    templates = [tiled, make_tiled(name="other")]
    with pytest.raises(ScheduleError, match="tiled: left out on request; other: left") as caught:
        shortlist_all(make_product(64, 64, 64), templates, H200, skip=("tiled", "other"))
    assert caught.value.fix.startswith("leave fewer templates out (--skip-template)")
    with pytest.raises(ScheduleError, match="tiled: k must be even") as caught:
        shortlist_all(make_product(64, 64, 63), [tiled], H200)
    assert "leave fewer" not in caught.value.fix


def test_unknown_templates_cannot_be_left_out(tiled: Any, make_tiled: Any) -> None:
    templates = [tiled, make_tiled(name="other")]
    check_skips(("other", "tiled"), templates)
    with pytest.raises(ScheduleError, match="no schedule template is called 'a', 'b'") as caught:
        check_skips(("b", "tiled", "a"), templates)
    assert caught.value.fix == "there are other, tiled"


def test_the_search_is_reproducible(tiled: Any, make_product: Make, make_compiler: Any) -> None:
    problem = make_product(300, 200, 100)
    compiler = make_compiler(lambda text: _resources())
    first = static_search(problem, [tiled], H200, compiler)
    assert static_search(problem, [tiled], H200, compiler) == first
    assert compiler.rounds[0] == compiler.rounds[1]


@pytest.mark.parametrize("sizes", [(512, 512, 256), (300, 200, 100), (64, 2048, 32)])
def test_the_least_estimate_is_that_of_all_shortlists(
    sizes: tuple[int, int, int], make_tiled: Any, make_product: Make
) -> None:
    problem = make_product(*sizes)
    templates = [make_tiled(sizes=tiles, name=str(tiles)) for tiles in ((32, 64), (128,), (1, 2))]
    lists = shortlist_all(problem, templates, H200).templates
    least = min(each.ranked[0].estimate for each in lists)
    assert least_seconds(problem, templates, H200) == least
    assert least_seconds(problem, templates[::-1], H200) == least


def test_conflicts_may_make_the_template_that_seems_fastest_lose(
    make_tiled: Any, make_product: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_product(512, 512, 256)
    plain, crowded = make_tiled(sizes=(16, 128)), make_tiled(sizes=(64,), name="crowded")
    alone = [least_seconds(problem, [each], H200) for each in (plain, crowded)]
    assert alone[1] < alone[0]  # without conflicts in its way
    lanes = SharedAccess(tuple(4 * 32 * lane for lane in range(32)), 4, 1)
    monkeypatch.setattr(crowded, "shared_accesses", lambda problem, schedule: (lanes,) * 2)
    slow = least_seconds(problem, [crowded], H200)
    assert slow > alone[0]
    assert least_seconds(problem, [plain, crowded], H200) == alone[0]


def test_a_template_that_cannot_win_is_not_shortlisted(
    make_tiled: Any, make_product: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_product(512, 512, 256)
    fast, slow = make_tiled(sizes=(64,)), make_tiled(sizes=(128,), name="slow")
    asked = []
    monkeypatch.setattr(slow, "shared_accesses", lambda *of: asked.append(of) or ())
    assert least_seconds(problem, [slow, fast], H200) == least_seconds(problem, [fast], H200)
    assert asked == []
    least_seconds(problem, [slow], H200)
    assert asked != []


def test_without_a_template_the_least_estimate_is_refused_as_shortlists_are(
    make_tiled: Any, make_product: Make
) -> None:
    problem = make_product(64, 64, 64)
    with pytest.raises(ScheduleError, match="none of its 24 schedules is legal") as error:
        least_seconds(problem, [make_tiled(sizes=(1, 2))], H200)
    with pytest.raises(ScheduleError) as same:
        shortlist_all(problem, [make_tiled(sizes=(1, 2))], H200)
    assert (error.value.what, error.value.fix) == (same.value.what, same.value.fix)


def test_kernels_are_asked_for_as_soon_as_their_problem_is_scored(
    tiled: Any, make_product: Make, make_compiler: Any
) -> None:
    events: list[str] = []
    compiler = make_compiler(lambda text: _resources())

    def compiled(sources: Iterable[KernelSource]) -> list[Compilation]:
        return compiler.compile(map(taken, sources))

    def taken(source: KernelSource) -> KernelSource:
        events.append("taken")
        return source

    def scored(stage: str, done: int, total: int, left: float | None = None) -> None:
        if stage == "scoring schedules":
            events.append(f"scored {done} of {total}")

    products = [make_product(512, 512, 256), make_product(256, 512, 256)]
    search_model(products, [tiled], H200, compiled, scored)
    assert list(dict.fromkeys(events)) == [
        "scored 0 of 2",
        "taken",
        "scored 1 of 2",
        "scored 2 of 2",
    ]
    assert len(compiler.rounds) == 1
