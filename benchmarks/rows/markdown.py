"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def table_row(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(each.replace('|', chr(92) + '|') for each in cells)} |"


def table_head(columns: Sequence[str]) -> list[str]:
    """The two lines above a table's rows."""
    return [table_row(columns), table_row(["---"] * len(columns))]
