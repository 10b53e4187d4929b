"""Plain text: names made safe to show, sizes, and tables with aligned columns.

A name of a model may hold anything that a file can hold.
"""

from collections.abc import Sequence


def visible(text: str, limit: int | None = None) -> str:
    """Return a text with everything that prints no mark of its own written as an escape.

    Control characters would steer a terminal, and bidirectional ones would make a name read
    differently from what it is.

    Args:
        text: Any text.
        limit: Most characters to show; the middle of longer texts is left out.
    """
    if limit is not None and len(text) > limit:
        half = (limit - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def visible_lines(text: str) -> str:
    """Do as `visible` does for a text of several lines."""
    return "\n".join(visible(line.replace("\t", "    ")) for line in text.split("\n"))


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay a table out with columns two spaces apart; a column of numbers is aligned to the right.

    Cells are shown as `visible` does, so that none of them can make a row of its own.
    """
    cells = [[visible(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(header))]
    lines = []
    for row in [list(header), *cells]:
        padded = (
            cell.rjust(width) if numeric else cell.ljust(width)
            for cell, width, numeric in zip(row, widths, right, strict=True)
        )
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) or (
        isinstance(cell, str) and cell.replace(".", "", 1).replace(",", "").isdigit()
    )


def byte_size(count: int) -> str:
    """Return a size in words: ``1.5 MiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
