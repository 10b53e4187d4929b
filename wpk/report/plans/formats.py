"""One report, written in the form that its file's name asks for."""

import json
from collections.abc import Callable
from pathlib import Path

from wpk.codec import encode
from wpk.errors import EngineError
from wpk.plan import Plan, PlanBundle, atomic_file
from wpk.report.plans.facts import ReportFacts
from wpk.report.plans.gather import gather
from wpk.report.plans.html import html_page
from wpk.report.plans.markdown import markdown_text

FORM = 4
"""Version of the form: raised whenever a field changes its meaning or goes away."""


def json_text(facts: ReportFacts) -> str:
    """Return the facts as one JSON object in ASCII; infinities and NaN are strings."""
    data = {"report": FORM, **encode(facts, ReportFacts)}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


FORMS: dict[str, Callable[[ReportFacts], str]] = {
    ".html": html_page,
    ".htm": html_page,
    ".json": json_text,
    ".md": markdown_text,
}
"""Forms by the suffix of the file's name."""


def require_format(path: Path) -> None:
    """Refuse a file name that names no form, before the work that the report is about.

    Raises:
        EngineError: The suffix is none of `FORMS`.
    """
    if path.suffix.lower() not in FORMS:
        raise EngineError(
            f"{path}: a report is written as {', '.join(FORMS)}, not as {path.suffix or 'this'}",
            fix="give the report a name that ends in one of these, e.g. report.html",
        )


def write_report(path: Path, subject: Plan | PlanBundle) -> None:
    """Write the report of a plan in the form that the file's suffix names, completely or not at all.

    Args:
        path: The file to write.
        subject: The plan; a bundle also shows the generated sources.

    Raises:
        EngineError: The suffix is none of `FORMS`.
        OutputError: The file cannot be written.
    """
    require_format(path)
    text = FORMS[path.suffix.lower()](gather(subject)).encode()
    with atomic_file(path) as stream:
        stream.write(text)
