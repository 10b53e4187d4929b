"""Aligned tables on a terminal."""

from collections.abc import Sequence

from wpk.report.visible import visible


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lay a table out with columns two spaces apart; a column of numbers is aligned to the right.

    Cells are shown as `wpk.report.visible` does, so that none of them can make a row of its own.
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
    """``1.5 MiB``."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
