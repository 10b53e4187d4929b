"""Which choices are looked at first."""

from pathlib import Path

from support.networks.handwritten import write

from wpk.dtypes import Precision
from wpk.graph_passes import every_site, pass_of
from wpk.lowering.lowered_model import Source
from wpk.lowering.model import ModelForms
from wpk.problems import Problem
from wpk.search.forms.form import form_of
from wpk.search.forms.order import FUSION, in_order


def test_whole_passes_and_then_what_decides_over_most_time_come_first(tmp_path: Path) -> None:
    path = write("squeeze_excite", tmp_path)
    lowered = ModelForms(Source(path, {}, Precision.FP16, ())).lowered()
    form = form_of(lowered)
    slow = lowered.program.problems[0]

    def estimate(problem: Problem) -> float:
        return 1.0 if problem == slow else 1e-3

    keys = in_order(lowered, form, estimate)
    assert keys[0] == every_site("channels-last")
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
