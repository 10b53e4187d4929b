"""The report as one web page that needs nothing else: no network, no other file."""

import base64
import hashlib
from pathlib import Path

from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.page.graph import graph_section
from wpk.report.plans.page.markup import Html, tag
from wpk.report.plans.page.measured import measured_section
from wpk.report.plans.page.memory import memory_section
from wpk.report.plans.page.operators import operators_section
from wpk.report.plans.page.overview import (
    checks_section,
    fallback_section,
    first_look,
    header,
    origin_section,
    precision_section,
    shares,
    tiles,
)
from wpk.report.plans.page.passes import passes_section
from wpk.report.plans.page.search import search_section

_PARTS = Path(__file__).parent / "page"


def html_page(facts: ReportFacts) -> str:
    """Return the whole page.

    Names in it come from a model that nobody vouches for. Everything is escaped, and a content
    security policy allows no network and no script but the page's own, known by its hash.
    """
    script = Html((_PARTS / "behaviour.js").read_text(encoding="utf-8"))
    style = Html((_PARTS / "style.css").read_text(encoding="utf-8"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"{facts.model} → {facts.target} {facts.precision.asked}"),
        tag("style", style),
        tag("noscript", tag("style", "tr[hidden]{display:table-row}.filter{display:none}")),
    )
    main = tag(
        "main",
        tiles(facts),
        measured_section(facts) if facts.shows_measured else "",
        shares(facts),
        first_look(facts),
        fallback_section(facts),
        operators_section(facts),
        graph_section(facts),
        search_section(facts),
        passes_section(facts),
        precision_section(facts),
        memory_section(facts),
        checks_section(facts),
        origin_section(facts),
    )
    body = tag("body", header(facts), main, tag("script", script))
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
