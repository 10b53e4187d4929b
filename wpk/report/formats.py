"""One report, written in the form that its file's name asks for."""

from collections.abc import Callable
from pathlib import Path

from wpk.engine.plan import Plan, PlanBundle
from wpk.errors import EngineError
from wpk.report.html import write_html
from wpk.report.json import write_json
from wpk.report.markdown import write_markdown

WRITERS: dict[str, Callable[[Path, Plan | PlanBundle], None]] = {
    ".html": write_html,
    ".htm": write_html,
    ".json": write_json,
    ".md": write_markdown,
}
"""Writers by the suffix of the file's name."""


def require_format(path: Path) -> None:
    """Refuse a file name that names no form, before the work that the report is about.

    Raises:
        EngineError: The suffix is none of `WRITERS`.
    """
    if path.suffix.lower() not in WRITERS:
        raise EngineError(
            f"{path}: a report is written as {', '.join(WRITERS)}, not as {path.suffix or 'this'}",
            fix="give the report a name that ends in one of these, e.g. report.html",
        )


def write_report(path: Path, subject: Plan | PlanBundle) -> None:
    """Write the report of a plan in the form that the file's suffix names.

    Raises:
        EngineError: The suffix is none of `WRITERS`.
        OutputError: The file cannot be written.
    """
    require_format(path)
    WRITERS[path.suffix.lower()](path, subject)
