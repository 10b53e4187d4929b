"""The nearest form of today to a partition of an older wpk: what is looked at, what is left out, what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import fix_partition
import pytest
from support.networks.rolled_rows import EPILOGUE, MOVED, ROLLED, rolled_then, written
from zoo import nearest_form, operators
from zoo.fixed import FixedForm
from zoo.lowered_forms import OWN, Decisions
from zoo.nearest_form import nearest, tried
from zoo.operators import Work

import wpk
from wpk.errors import GraphError
from wpk.graph_passes import Site
from wpk.lowering.lowered_model import LoweredModel

BLOCK = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 8, 4, 3] x, float[8, 8, 1, 1] w, float[8, 8, 1, 1] v) => (float[1, 8, 4, 3] z)
{
    c = Conv(x, w)  r = Relu(c)  d = Conv(x, v)  y = Add(r, d)  z = Sigmoid(y)
}
"""


def test_the_nearest_form_is_the_given_one_where_there_is_one(tmp_path: Path) -> None:
    forms = written(BLOCK, tmp_path)
    usual = tried(forms.lowered())
    kinds = {site.words: site.key for site in usual.sites}
    unfused = Decisions(frozenset([kinds[EPILOGUE]]))
    wanted = tried(forms.lowered(unfused))
    assert wanted.distance(usual.partition)
    found = nearest(forms.lowered, wanted.partition)
    assert found.partition == wanted.partition
    assert found.decisions.changed
    strange = wanted.partition + Counter([Work("Nothing", (1,), (), (1,))])
    assert nearest(forms.lowered, strange).distance(strange) == 1  # and no further away
    assert nearest(forms.lowered, strange, (), wanted.decisions).distance(strange) == 1


MASKED = """
<ir_version: 8, opset_import: ["" : 17]>
g (float[4, 2, 16, 8] q, float[4, 2, 8, 16] k, float[4, 2, 16, 8] v, float[4, 2, 16, 16] b, float[4, 1, 16, 16] m)
    => (float[4, 2, 16, 8] y)
{
    s = MatMul(q, k)  t = Add(s, b)  u = Add(t, m)  p = Softmax<axis = -1>(u)  y = MatMul(p, v)
}
"""


def key_of(site: Site) -> Decisions:
    """What decides over a site otherwise."""
    return Decisions(frozenset([site.key]))


def test_choices_that_only_together_bring_a_form_nearer_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attention in parts, whose mask is an operator: it leaves the softmax, then the product that would take it instead."""
    forms, rows, scores = written(MASKED, tmp_path), 4 * 2 * 16 * 8, 4 * 2 * 16 * 16
    parts = Counter(
        [
            Work("Product", (rows, rows, scores), (), (scores,)),
            Work("Elementwise", (4 * 16 * 16, scores), (), (scores,)),
            Work("Normalisation", (scores,), (), (scores,)),
            Work("Product", (rows, scores), (), (rows,)),
        ]
    )
    found = nearest(forms.lowered, parts)
    assert found.partition == parts
    again = tried(forms.lowered(found.decisions))
    assert again.decisions == found.decisions  # every key names a place
    places = {site.key: site for site in again.sites}
    for key in found.decisions.changed:  # and is needed
        other = forms.lowered(found.decisions ^ key_of(places[key]))
        assert tried(other).partition != parts
    monkeypatch.setattr(nearest_form, "MOST_TOGETHER", 1)
    assert nearest(forms.lowered, parts).distance(parts) == 3
    monkeypatch.setattr(nearest_form, "combinations", lambda *_: ())
    assert nearest(forms.lowered, parts).distance(parts) == 5  # no nearer than the passes' own


def test_what_is_decided_but_not_needed_is_taken_back(tmp_path: Path) -> None:
    forms = written(MASKED, tmp_path)
    sites = {site.nodes: site for site in forms.lowered().sites}
    needed, idle = sites["MatMul_4", "y_cast"], sites["Softmax_3", "Add_2"]
    wanted = tried(forms.lowered(key_of(needed)))
    more = tried(forms.lowered(key_of(needed) ^ key_of(idle)))
    assert more.partition == wanted.partition
    assert more.decisions.changed == {needed.key, idle.key}
    begin = Decisions(more.decisions.changed, frozenset(NEWER))
    assert nearest(forms.lowered, wanted.partition, (), begin).decisions == key_of(needed)


def test_no_more_forms_are_looked_at_than_may_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms, asked = written(ROLLED, tmp_path), list[Decisions]()
    wanted = rolled_then(forms).partition

    def lower(decisions: Decisions) -> LoweredModel:
        asked.append(decisions)
        return forms.lowered(decisions)

    assert nearest(lower, wanted, NEWER).partition == wanted
    assert len(asked) == len({*asked}) > 3
    asked.clear()
    monkeypatch.setattr(nearest_form, "MOST_LOWERED", 1)
    assert nearest(lower, wanted, NEWER).distance(wanted)
    assert len(asked) == 2  # and the passes' own
    monkeypatch.setattr(nearest_form, "MOST_LOWERED", 3)
    known = rolled_then(forms).decisions
    lost = frozenset(["fuse-operators:0123456789abcdef"])
    begin = Decisions(known.changed | lost, known.skipped)
    assert nearest(forms.lowered, wanted, NEWER, begin).decisions == known


NEWER = (MOVED, "norm-into-product", "windows-in-attention", "reshapes-behind")


def test_a_newer_pass_is_left_out_where_only_that_leads_to_the_given_partition(
    tmp_path: Path,
) -> None:
    forms = written(ROLLED, tmp_path)
    wanted = rolled_then(forms)
    assert wanted.distance(tried(forms.lowered()).partition) > 3
    assert nearest(forms.lowered, wanted.partition, NEWER[1:]).distance(wanted.partition)
    # What was known before is given up as far as it is not needed, or names nothing any more.
    lost = frozenset(["fuse-operators:0123456789abcdef"])
    more = Decisions(wanted.decisions.changed | lost, frozenset(NEWER))
    gone = Decisions(skipped=frozenset(["magic"]))
    begins = [(NEWER, begin) for begin in (OWN, more, gone, Decisions(lost))]
    for newer, begin in (*begins, ((), more)):
        found = nearest(forms.lowered, wanted.partition, newer, begin)
        assert found.partition == wanted.partition
        assert found.decisions.skipped == {MOVED}  # the other ones do nothing here
        assert len(found.decisions.changed) == 1


def test_no_pass_is_left_out_where_none_has_to_be(tmp_path: Path) -> None:
    forms = written(ROLLED, tmp_path)
    usual = tried(forms.lowered())
    begin = rolled_then(forms).decisions
    assert nearest(forms.lowered, usual.partition, NEWER, begin).decisions == OWN
    moved_too = usual.partition + Counter([Work("Nothing", (1,), (), (1,))])
    assert nearest(forms.lowered, moved_too, NEWER, begin).decisions == OWN


def test_a_pass_without_which_lowering_refuses_is_not_left_out(tmp_path: Path) -> None:
    forms = written(ROLLED, tmp_path)
    wanted = rolled_then(forms)
    refused = list[Decisions]()

    def lower(decisions: Decisions) -> LoweredModel:
        if MOVED in decisions.skipped:
            refused.append(decisions)
            raise GraphError("no", fix="none")
        return forms.lowered(decisions)

    found = nearest(lower, wanted.partition, NEWER)
    assert refused
    assert not found.decisions.skipped
    assert found.distance(wanted.partition)

    def broken(_: Decisions) -> LoweredModel:
        raise GraphError("damaged", fix="none")

    with pytest.raises(GraphError, match="damaged"):
        nearest(broken, wanted.partition, NEWER)


def test_where_not_all_newer_passes_can_be_left_out_single_ones_are(tmp_path: Path) -> None:
    forms = written(ROLLED, tmp_path)
    wanted, refused = rolled_then(forms), list[Decisions]()

    def lower(decisions: Decisions) -> LoweredModel:
        if len(decisions.skipped) > 1:
            refused.append(decisions)
            raise GraphError("no", fix="none")
        return forms.lowered(decisions)

    found = nearest(lower, wanted.partition, (MOVED, "modern-forms"))
    assert refused
    assert found.partition == wanted.partition
    assert found.decisions.skipped == {MOVED}


def test_an_older_wpk_names_its_operators_and_its_passes(tmp_path: Path) -> None:
    """Run as the older one is, on today's sources: no pass is newer than they are."""
    forms = written(ROLLED, tmp_path)
    then = fix_partition.made_then(Path(wpk.__file__).parents[1], tmp_path / "m.onnx")
    lowered = forms.lowered()
    assert then.partition == operators.partition_of(lowered.program)
    assert MOVED in then.passes
    assert then.passes == {record.name for record in lowered.passes}
    before = FixedForm("m", 1, "", (), (MOVED,), 0, 0, 0)
    form = fix_partition.fixed_form(before, forms, lowered, then)
    assert (form.skipped, form.changed, form.only_then, form.only_here) == ((), (), (), ())
    older = replace(then, partition=rolled_then(forms).partition, passes=then.passes - {MOVED})
    before = replace(before, skipped=())
    form = fix_partition.fixed_form(before, forms, lowered, older)
    assert (form.skipped, form.only_then, form.only_here) == ((MOVED,), (), ())
    assert len(form.changed) == 1
