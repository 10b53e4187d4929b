"""Cases of other forms hold what whole cases would, and compute only what the model's own do not hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.networks.handwritten import write

from wpk.checks import operator_reference
from wpk.dtypes import Precision
from wpk.graph_passes import pass_of
from wpk.lowering.lowered_model import Source
from wpk.lowering.model import ModelForms
from wpk.phases import Phases
from wpk.trial_bench.form_cases import FormCases
from wpk.trial_bench.model_cases import ModelCases


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes whose references were computed."""
    nodes: list[str] = []
    body = operator_reference.NodeBody

    def counting(node: Any, *given: Any) -> Any:
        nodes.append(node.name)
        return body(node, *given)

    monkeypatch.setattr(operator_reference, "NodeBody", counting)
    return nodes


@pytest.mark.parametrize("name", ["squeeze_excite", "attention_with_mask"])
def test_they_are_those_of_the_form_alone(name: str, tmp_path: Path, counted: list[str]) -> None:
    forms = ModelForms(Source(write(name, tmp_path), {}, Precision.FP16, ()))
    usual = forms.lowered()
    own = ModelCases(usual, 3, Phases())
    own.finish()
    assert len(own) == len(set(usual.program.problems))
    for key in dict.fromkeys(s.key for s in usual.sites if pass_of(s.key) == "fuse-operators"):
        form = forms.lowered(frozenset({key}))
        new = [p for p in dict.fromkeys(form.program.problems) if p not in own]
        counted.clear()
        cases = FormCases(own, dict.fromkeys(new, form), 3, Phases())
        assert not counted
        found = {problem: cases[problem] for problem in new}
        computed = len(counted)
        whole = ModelCases(form, 3, Phases())
        whole.finish()
        assert not new or computed < len(counted) - computed  # fewer than all of them
        for problem, case in found.items():
            expected = whole[problem]
            assert case.program == expected.program
            assert (case.result is None) == (expected.result is None)
            for output, values in (expected.result.outputs if expected.result else {}).items():
                assert case.result is not None
                np.testing.assert_allclose(case.result.outputs[output], values, 2e-2, 2e-2)
        assert cases[next(iter(own))] is own[next(iter(own))]
