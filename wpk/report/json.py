"""The report as JSON, for programs: the facts with their names, and a version of the form."""

import json
from pathlib import Path

from wpk.codec import encode
from wpk.engine.atomic_file import atomic_file
from wpk.engine.plan import Plan, PlanBundle
from wpk.report.facts import ReportFacts
from wpk.report.gather import gather

FORM = 1
"""Version of the form: raised whenever a field changes its meaning or goes away."""


def write_json(path: Path, subject: Plan | PlanBundle) -> None:
    """Write the report of a plan as JSON, completely or not at all.

    Raises:
        OutputError: The file cannot be written.
    """
    text = json_text(gather(subject)).encode()
    with atomic_file(path) as stream:
        stream.write(text)


def json_text(facts: ReportFacts) -> str:
    """The facts as one JSON object in ASCII; infinities and NaN are strings."""
    data = {"report": FORM, **encode(facts, ReportFacts)}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
