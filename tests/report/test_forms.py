"""The report in a terminal, as Markdown and as JSON, and the choice between forms."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from wpk.errors import EngineError
from wpk.plan.fields import decode
from wpk.plan.plan import CheckMode, PlanBundle
from wpk.report import visible, visible_lines
from wpk.report.blocks import plain_text
from wpk.report.plans.check_words import QUICK_WORDS
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.formats import FORM, json_text, require_format, write_report
from wpk.report.plans.gather import gather
from wpk.report.plans.html import html_page
from wpk.report.plans.markdown import markdown_text, plain
from wpk.report.plans.terminal import operator_source, summary


def test_the_terminal_shows_each_operator_in_one_line(
    bundle: PlanBundle, facts: ReportFacts
) -> None:
    lines = plain_text(*summary(bundle.plan)).splitlines()
    for operator in facts.operators:
        (line,) = (each for each in lines if each.startswith(f"{operator.name} "))
        assert operator.work in line
        assert operator.schedule in line
        assert operator.launches[0].cubin_source[:12] in line
        assert line.endswith(" yes")
        assert " ok " in line


def test_the_terminal_shows_the_sums_and_the_funnel(bundle: PlanBundle, facts: ReportFacts) -> None:
    text = plain_text(*summary(bundle.plan))
    assert f"operators  {len(facts.operators)}, {facts.launches} kernel launches" in text
    assert f"estimate {facts.estimate_us:.2f} µs (predicted, not measured)" in text
    assert re.search(r"2000 +600 +8 +4", text)
    assert "(hmma.f16)" in text
    assert "ok  ONNX Runtime, seed 0" in text


def test_the_terminal_says_what_was_not_checked(bundle: PlanBundle) -> None:
    unchecked = replace(bundle.plan, checks=(), check_mode=CheckMode.OFF)
    assert "written with --check off" in plain_text(*summary(unchecked))


def test_every_form_says_what_a_quick_check_left_out(bundle: PlanBundle) -> None:
    quick = gather(replace(bundle.plan, check_mode=CheckMode.QUICK))
    assert QUICK_WORDS in plain_text(*summary(replace(bundle.plan, check_mode=CheckMode.QUICK)))
    for text in (markdown_text(quick), html_page(quick)):
        assert "hecked quickly: at the tuned sizes" in text
    assert QUICK_WORDS not in plain_text(*summary(bundle.plan))


def test_hostile_names_cannot_steer_a_terminal(hostile: PlanBundle) -> None:
    text = plain_text(*summary(hostile.plan))
    assert "\x1b" not in text
    assert "\u202e" not in text
    text.encode()  # no lone surrogates either
    assert "WRONG" in text


def test_markdown_has_a_row_for_each_operator_and_only_its_own_tables(
    facts: ReportFacts, hostile: PlanBundle
) -> None:
    for each in (facts, gather(hostile)):
        text = markdown_text(each)
        text.encode()
        rows = [line for line in text.splitlines() if line.startswith("| ")]
        header = rows.index(next(row for row in rows if row.startswith("| operator ")))
        table = rows[header : header + 2 + len(each.operators)]
        cells = {len(re.findall(r"(?<!\\)\|", row)) for row in table}
        assert len(table) == 2 + len(each.operators)
        assert cells == {13}
        assert not re.search(r"(?<!\\)<", text)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("conv_relu_0: a(b) - c + d # e!", "conv_relu_0: a(b) - c + d # e!"),
        ("_a_ b_", r"\_a\_ b\_"),
        ("a|b*c`d<e>[f](g)~h", r"a\|b\*c\`d\<e\>\[f\](g)\~h"),
        ("- a", r"\- a"),
        ("&lt; & b", r"\&lt; & b"),
    ],
)
def test_markdown_escapes_what_would_be_markup_and_nothing_else(text: str, written: str) -> None:
    assert plain(text) == written


def test_json_holds_every_fact(facts: ReportFacts) -> None:
    data = json.loads(json_text(facts))
    assert data.pop("report") == FORM
    assert decode(data, ReportFacts, "report") == facts


def test_json_of_hostile_names_is_ascii(hostile: PlanBundle) -> None:
    assert json_text(gather(hostile)).isascii()


@pytest.mark.parametrize(
    ("name", "start"), [("r.html", "<!doctype html>"), ("r.MD", "# small"), ("r.json", "{")]
)
def test_the_suffix_chooses_the_form(
    bundle: PlanBundle, folder: Path, name: str, start: str
) -> None:
    write_report(folder / name, bundle)
    assert (folder / name).read_text(encoding="utf-8").startswith(start)


def test_refuses_a_suffix_that_names_no_form(bundle: PlanBundle, folder: Path) -> None:
    with pytest.raises(EngineError, match=r"r\.pdf: a report is written as \.html"):
        require_format(folder / "r.pdf")
    with pytest.raises(EngineError):
        write_report(folder / "r", bundle)
    assert not list(folder.iterdir())


def test_gives_the_source_of_an_operator_or_names_those_there_are(bundle: PlanBundle) -> None:
    step = bundle.plan.steps[0]
    source = operator_source(bundle, step.operator.name)
    assert bundle.sources[step.launches[0].kernel] in source
    with pytest.raises(EngineError, match="no operator 'nobody'"):
        operator_source(bundle, "nobody")


def test_makes_invisible_characters_visible_and_shortens_in_the_middle() -> None:
    assert visible("plain é →") == "plain é →"
    assert visible("a\x1b[0m\u202eb\n") == "a\\x1b[0m\\u202eb\\n"
    assert visible("abcdefghij", 5) == "ab…ij"
    assert visible_lines("a\n\tb\x07") == "a\n    b\\x07"
