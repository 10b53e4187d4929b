"""Which choices are looked at first."""

from pathlib import Path

from support.networks.handwritten import write

from wpk.dtypes import Precision
from wpk.graph_passes import every_site, pass_of
from wpk.lowering.lowered_model import Source
from wpk.lowering.model import ModelForms
from wpk.problems import Problem
from wpk.search.forms.form import form_of
from wpk.search.forms.order import FUSION, in_order, kinds_in_order


def test_whole_passes_and_then_what_decides_over_most_time_come_first(tmp_path: Path) -> None:
    path = write("squeeze_excite", tmp_path)
    lowered = ModelForms(Source(path, {}, Precision.FP16, ())).lowered()
    form = form_of(lowered)
    slow = lowered.program.problems[0]

    def estimate(problem: Problem) -> float:
        return 1.0 if problem == slow else 1e-3

    keys = in_order(lowered, form, estimate)
    assert keys[0] == every_site("channels-last")  # which is behind fusion
    assert every_site(FUSION) not in keys  # the unfused engine is that
    assert sorted({*keys} - {keys[0]}) == sorted(form.sites)
    (operator, *_) = lowered.program.operators
    first = next(key for key in keys[1:] if pass_of(key) == FUSION)
    assert set(form.sites[first][0].nodes) & set(operator.nodes)


def test_what_runs_all_passes_again_comes_last(tmp_path: Path) -> None:
    path = write("attention_with_mask", tmp_path)
    lowered = ModelForms(Source(path, {}, Precision.FP16, ())).lowered()
    form = form_of(lowered)
    sites = {**form.sites, "gemm-between-reshapes:1": form.sites[next(iter(form.sites))]}
    altered = type(form)(form.changed, form.problems, form.handed, sites)
    assert in_order(lowered, altered, lambda problem: 1.0)[-1] == "gemm-between-reshapes:1"


def test_kinds_are_what_a_pass_does_in_the_same_words_those_of_later_passes_first(
    tmp_path: Path,
) -> None:
    path = write("squeeze_excite", tmp_path)
    lowered = ModelForms(Source(path, {}, Precision.FP16, ())).lowered()
    form = form_of(lowered)
    kinds = kinds_in_order(lowered, form, lambda problem: 1.0)
    assert sorted(key for keys in kinds for key in keys) == sorted(form.sites)
    for keys in kinds:
        assert len({(pass_of(key), form.sites[key][0].words) for key in keys}) == 1
    assert len(kinds) == len({(pass_of(k), s[0].words) for k, s in form.sites.items()})
    names = [pass_of(keys[0]) for keys in kinds]
    assert names.index("channels-last") < names.index(FUSION)  # fewer passes run again
    early = {**form.sites, "gemm-between-reshapes:1": form.sites[kinds[0][0]]}
    altered = type(form)(form.changed, form.problems, form.handed, early)
    last = kinds_in_order(lowered, altered, lambda problem: 1.0)[-1]
    assert last == ("gemm-between-reshapes:1",)
