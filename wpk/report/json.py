"""The report as JSON, for programs: the facts with their names, and a version of the form."""

import json

from wpk.codec import encode
from wpk.report.facts import ReportFacts

FORM = 4
"""Version of the form: raised whenever a field changes its meaning or goes away."""


def json_text(facts: ReportFacts) -> str:
    """The facts as one JSON object in ASCII; infinities and NaN are strings."""
    data = {"report": FORM, **encode(facts, ReportFacts)}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"
