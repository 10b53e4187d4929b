"""The web page: whole, self-contained, safe, and alive in a browser."""

import base64
import hashlib
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from wpk.lowering.program import NodeRecord
from wpk.plan.output_file import OutputError
from wpk.plan.plan import PlanBundle
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.formats import write_report
from wpk.report.plans.gather import gather
from wpk.report.plans.html import html_page
from wpk.report.plans.page.markup import Html, joined, tag
from wpk.report.plans.schedule_words import explained

VOID = {"meta", "img", "wbr", "input"}


class Page(HTMLParser):
    """Elements with their attributes, text, and whether every element is closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.script = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name: str, attributes: list[tuple[str, str | None]]) -> None:
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name: str) -> None:
        assert self.open.pop() == name

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.script += data
        elif self.open and self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


@pytest.fixture(scope="module")
def page(facts: ReportFacts) -> Page:
    return Page(html_page(facts))


def test_every_element_is_closed(page: Page) -> None:
    assert page.open == []
    assert sum(name == "main" for name, _ in page.elements) == 1


def test_ids_are_unique_and_links_lead_somewhere(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    links = {attributes["href"] for name, attributes in page.elements if name == "a"}
    assert links
    for link in links:
        assert link is not None
        assert link.removeprefix("#") in ids
    controlled = {a["aria-controls"] for _, a in page.elements if "aria-controls" in a}
    assert controlled <= set(ids)


def test_the_page_needs_no_other_file(facts: ReportFacts, page: Page) -> None:
    loading = {"src", "srcset", "data", "poster", "action", "background"}
    assert not any(loading & set(attributes) for _, attributes in page.elements)
    assert not any(name in {"link", "iframe", "img", "object"} for name, _ in page.elements)
    assert not re.search(r"https?:|url\(|@import|fetch\(", html_page(facts))


def test_shows_each_operator_with_nodes_numbers_and_source(facts: ReportFacts, page: Page) -> None:
    for operator in facts.operators:
        assert operator.name in page.text
        assert operator.work in page.text
        assert f"{operator.estimate_us:.2f}" in page.text
        assert f"{operator.bound_us:.2f}" in page.text
        for launch in operator.launches:
            assert launch.cubin_source[:12] in page.text
            assert facts.sources[launch.cubin_source] in page.text
    for node in facts.nodes:
        assert node.name in page.text


def test_shows_why_things_were_not_done(page: Page) -> None:
    assert "its weight is shared" in page.text
    assert "k must be even" in page.text
    assert "skipped on request" in page.text


def test_nodes_stand_in_the_models_order_also_where_they_were_removed(
    facts: ReportFacts, page: Page
) -> None:
    graph = page.text[page.text.index("Graph before and after") :]
    stem, norm, relu = (graph.index(f" {name}") for name in ("stem", "norm", "stem_relu"))
    assert stem < norm < relu
    (norm_fact,) = (node for node in facts.nodes if node.name == "norm")
    assert not norm_fact.operators


def test_a_normalisation_stands_at_the_product_that_it_went_into(bundle: PlanBundle) -> None:
    """Also where another operator is the first to read the result, as behind a shortcut."""
    origin = bundle.plan.provenance
    plan = replace(bundle.plan, provenance=replace(origin, before=_behind_a_branch(origin.before)))
    nodes = {node.name: node for node in gather(plan).nodes}
    assert nodes["branch_norm"].operators == ()
    assert nodes["branch_norm"].near in nodes["branch"].operators


def _behind_a_branch(nodes: tuple[NodeRecord, ...]) -> tuple[NodeRecord, ...]:
    """The nodes with a normalisation between ``branch`` and ``sum``."""
    found = []
    for node in nodes:
        if node.name == "sum":
            found.append(NodeRecord("branch_norm", "BatchNormalization", ("b",), ("bn",)))
            inputs = tuple("bn" if name == "b" else name for name in node.inputs)
            node = replace(node, inputs=inputs)
        found.append(node)
    return tuple(found)


def test_operators_can_be_filtered_and_equal_ones_are_known(facts: ReportFacts, page: Page) -> None:
    bodies = [a for name, a in page.elements if name == "tbody" and "data-words" in a]
    assert len(bodies) == len(facts.operators)
    for operator, body in zip(facts.operators, bodies, strict=True):
        assert body["data-problem"] == str(operator.problem)
        for word in (operator.name, operator.kind, operator.title):
            assert word.lower() in (body["data-words"] or "")


def test_says_where_to_look_first_and_what_numbers_mean(facts: ReportFacts, page: Page) -> None:
    first = page.text[page.text.index("Where to look first") : page.text.index("Filter ")]
    most = max(facts.operators, key=lambda each: each.headroom_us)
    assert most.name in first
    assert f"{1e6 / facts.estimate_us:,.0f}/s" in page.text
    operator = next(each for each in facts.operators if each.candidate.configuration)
    for _, _, words in explained(operator.candidate):
        assert words
        assert words in page.text


def test_claims_no_measurement(page: Page) -> None:
    assert "predicted, not measured" in page.text
    assert "No time here is measured" in page.text


def test_a_wrong_plan_is_not_praised(hostile: PlanBundle) -> None:
    text = Page(html_page(gather(hostile))).text
    assert "✗ Wrong numbers" in text
    assert "Every kernel was executed" not in text


def test_only_the_pages_own_script_may_run(page: Page) -> None:
    (policy,) = (a["content"] for _, a in page.elements if "http-equiv" in a)
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )


def test_names_of_a_hostile_model_stay_text(hostile: PlanBundle, page: Page) -> None:
    written = html_page(gather(hostile))
    bad = Page(written)
    assert bad.open == []
    assert {name for name, _ in bad.elements} <= {name for name, _ in page.elements}
    assert not any(key.startswith("on") for _, attributes in bad.elements for key in attributes)
    assert bad.script == page.script
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\ud800-\udfff]", written)
    assert "</script><img src=x onerror=alert(1)>" in bad.text


def test_huge_names_are_shortened(bundle: PlanBundle, facts: ReportFacts) -> None:
    huge = "n" * 1_000_000
    first, *rest = bundle.plan.steps
    nodes = (*first.operator.nodes, huge)
    step = replace(first, operator=replace(first.operator, name=huge, nodes=nodes, note=huge))
    before = (*bundle.plan.provenance.before, NodeRecord(huge, huge, (), (huge,)))
    origin = replace(bundle.plan.provenance, model=huge, before=before)
    plan = replace(bundle.plan, steps=(step, *rest), provenance=origin)
    page = html_page(gather(replace(bundle, plan=plan)))
    assert len(page) < len(html_page(facts)) + 100_000


def test_text_becomes_markup_only_through_tag() -> None:
    assert tag("b", "<i>", title='"') == '<b title="&quot;">&lt;i&gt;</b>'
    assert joined(["<", Html("<br>")]) == "&lt;<br>"
    assert tag("td", "x", hidden=True, id=None, open=False) == "<td hidden>x</td>"


def test_writes_the_file_or_leaves_it(bundle: PlanBundle, folder: Path) -> None:
    write_report(folder / "a.html", bundle)
    assert (folder / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    with pytest.raises(OutputError, match="cannot be written"):
        write_report(folder / "missing" / "a.html", bundle)


def test_a_plan_without_its_bundle_has_a_page_without_sources(bundle: PlanBundle) -> None:
    text = Page(html_page(gather(bundle.plan))).text
    assert "Generated CUDA" not in text
    assert bundle.plan.steps[0].operator.name in text


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_the_script_runs_and_opens_the_operator_of_the_address(
    bundle: PlanBundle, folder: Path
) -> None:
    write_report(folder / "a.html", bundle)
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        f"--user-data-dir={folder / 'profile'}",
        "--dump-dom",
        f"{(folder / 'a.html').as_uri()}#operator-1",
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    dom = Page(done.stdout)
    inside = {
        a["id"]: "hidden" in a for _, a in dom.elements if (a.get("id") or "").startswith("in")
    }
    assert inside.pop("inside-1") is False
    assert all(inside.values())
