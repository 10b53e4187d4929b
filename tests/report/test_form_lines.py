"""What reports say of the forms that were tried."""

from dataclasses import replace

from wpk.plan.forms import Begun, FormOutcome, FormSearch, TriedForm
from wpk.plan.plan import PlanBundle
from wpk.report.blocks import plain_text
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.forms import form_rows, form_sentences
from wpk.report.plans.gather import gather
from wpk.report.plans.html import html_page
from wpk.report.plans.markdown import markdown_text
from wpk.report.plans.terminal import summary

TAKEN = TriedForm(
    *("fuse:1", "an operator computes <what> is behind it", 3, FormOutcome.TAKEN, ""),
    *(20e-6, 21e-6, 30e-6, 25e-6),
)
RULED_OUT = TriedForm("join:2", "products are one", 1, FormOutcome.HOPELESS, "", 1e-6, 9e-6)
REFUSED = TriedForm("join:3", "products are one", 1, FormOutcome.REFUSED, "no template computes it")
SEARCH = FormSearch((TAKEN, RULED_OUT, REFUSED), 3, ("fuse:1",), ("fuse:1",), measured=True)


def test_without_a_search_nothing_is_said() -> None:
    assert form_sentences(None) == []
    assert form_rows(None) == []


def test_the_words_count_partitions_and_name_what_is_taken_back() -> None:
    first, last = form_sentences(SEARCH)
    assert "3 partitions of the model were compared by measured times" in first
    assert "1 taken, 1 slower beyond what the models may err by, 1 refused" in first
    assert last == "Taken back in this plan: fuse:1."


def test_a_partition_that_the_whole_engine_did_not_confirm_is_named() -> None:
    lines = form_sentences(replace(SEARCH, chosen=()))
    assert "not the fastest whole engine beyond the noise" in lines[1]
    assert len(lines) == 2


def test_the_words_say_which_form_tuning_began_with_and_why() -> None:
    other = Begun(("fuse:1",), 7, passes_estimate=30e-6, estimate=25e-6)
    lines = form_sentences(replace(SEARCH, begun=other))
    assert "the models prefer of 7 that were looked at before, 25.0 µs" in lines[1]
    assert "the passes' own is 30.0 µs by estimates" in lines[1]
    own = Begun((), 7, passes_estimate=30e-6, estimate=30e-6)
    lines = form_sentences(replace(SEARCH, begun=own))
    assert "began with the passes' own form, 30.0 µs by estimates: none of 7" in lines[1]


def test_what_was_decided_again_is_said_so() -> None:
    (row,) = form_rows(replace(SEARCH, tried=(replace(TAKEN, again=True),)))
    assert row[0].startswith("done again: an operator computes")


def test_rows_show_predicted_and_measured_times_but_not_what_was_ruled_out() -> None:
    taken, refused = form_rows(SEARCH)
    assert taken[1:] == ["3", "21.00", "20.00", "25.00", "30.00", "taken"]
    assert refused[-1] == "refused: no template computes it"


def test_every_form_of_the_report_tells_of_them(bundle: PlanBundle, facts: ReportFacts) -> None:
    plan = replace(bundle.plan, forms=SEARCH)
    told = replace(facts, forms=SEARCH)
    assert gather(plan).forms == SEARCH
    assert "3 partitions" in plain_text(*summary(plan))
    assert "3 partitions" in markdown_text(told)
    page = html_page(told)
    assert "3 partitions" in page
    assert "computes &lt;what&gt; is" in page
    assert 'id="measured"' in page  # though no time of this plan was measured
    assert 'id="measured"' not in html_page(facts)
