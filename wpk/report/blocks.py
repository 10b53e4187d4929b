"""What is printed for people: texts and tables, laid out by rich for the terminal that they are shown on.

A terminal gets tables of its width, with colours where it has any and NO_COLOR does not forbid them. A file
or a pipe gets one line a row, however long, and plain text.

Whatever is shown is made visible first: a name of a model may hold anything that a file can hold.
"""

import io
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TextIO

from wpk.report.text import visible, visible_lines

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

_GAP = 2
_LONGEST_WORD = 22
"""A longer name may be broken to keep a column that would otherwise be left out."""

_MOST_LINES = 3
"""A cell that takes more makes its table hard to follow."""

_UNTOLD = 80
"""Columns of a terminal that does not tell."""

_UNLIMITED = 100_000
_STYLES = {
    "ok": "green",
    "same": "green",
    "right": "green",
    "yes": "green",
    "WRONG": "bold red",
    "differs": "bold red",
    "NO": "bold red",
    "inconclusive": "yellow",
    "unchecked": "yellow",
    "warning": "bold yellow",
}
_SPEED = re.compile("([0-9]+[.][0-9]+)\N{MULTIPLICATION SIGN} as fast")


@dataclass(frozen=True)
class Table:
    """Rows of cells below a header.

    Attributes:
        header: A word for each column.
        rows: Cells; each is shown as `wpk.report.visible` does.
        secondary: Columns that a narrow terminal leaves out, the first of them first.
        title: What the table is, in a line above it.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[object]]
    secondary: Sequence[str] = ()
    title: str = ""


@dataclass(frozen=True)
class Facts:
    """Lines that begin with a word for what they say: ``time  bound 20.8 µs``."""

    lines: Sequence[tuple[str, str]] = field(default_factory=list)


Block = str | Table | Facts
"""A part of what is printed; a blank line stands between two."""


def print_blocks(*blocks: Block, stream: TextIO | None = None) -> None:
    """Print to a stream, stdout by default."""
    stream = sys.stdout if stream is None else stream
    if not stream.isatty():
        stream.write(plain_text(*blocks))
        return
    from rich.console import Console

    console = Console(
        file=stream,
        width=columns_of(stream),
        markup=False,
        emoji=False,
        highlight=False,
        force_jupyter=False,
    )
    for number, block in enumerate(blocks):
        if number:
            console.print()
        for part in _parts(block, console):
            console.print(part)


def columns_of(stream: TextIO) -> int:
    """The width of a terminal, or what COLUMNS says in its place."""
    told = os.environ.get("COLUMNS", "")
    if told.isdigit() and int(told) > 0:
        return int(told)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _UNTOLD
    except (OSError, ValueError):
        return _UNTOLD


def plain_text(*blocks: Block) -> str:
    """What a file gets, with a line break at its end."""
    from rich.console import Console

    console = Console(
        file=io.StringIO(),
        width=_UNLIMITED,
        no_color=True,
        force_terminal=False,
        force_jupyter=False,
    )
    texts = []
    for block in blocks:
        if isinstance(block, str):
            texts.append(f"{visible_lines(block)}\n")
            continue
        with console.capture() as captured:
            for part in _parts(block, console):
                console.print(part)
        texts.append("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    return "\n".join(texts)


def format_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as plain text, its columns two spaces apart, those of numbers aligned to the right."""
    return plain_text(Table(header, rows)).removesuffix("\n")


def _parts(block: Block, console: "Console") -> "list[RenderableType]":
    from rich.text import Text

    if isinstance(block, str):
        return [Text(visible_lines(block))]
    if isinstance(block, Facts):
        return [_grid(block)]
    shown, left_out = _fitting(block, console.width)
    title = [Text(visible(block.title), "bold")] if block.title else []
    note = f"left out in {console.width} columns: {', '.join(left_out)}; a pipe or a file gets all"
    return [*title, _laid_out(shown, console.width), *([Text(note, "dim")] if left_out else [])]


def _fitting(table: Table, width: int) -> tuple[Table, list[str]]:
    """The columns that a width holds, and the names of the others."""
    left_out: list[str] = []
    for name in table.secondary:
        if _least_width(table) <= width:
            break
        if name not in table.header:
            continue
        at = list(table.header).index(name)
        rows = [[*row[:at], *row[at + 1 :]] for row in table.rows]
        header = [*table.header[:at], *table.header[at + 1 :]]
        table = replace(table, header=header, rows=rows)
        left_out.append(name)
    return table, left_out


def _least_width(table: Table) -> int:
    """Columns of the terminal below which the table is hard to read."""
    return sum(_least_widths(table)) + _GAP * (len(table.header) - 1)


def _least_widths(table: Table) -> list[int]:
    """The least width of each column: no word is broken, and no cell takes more than some lines."""
    columns = zip(table.header, *table.rows, strict=True)
    return [max(map(_least_width_of, column)) for column in columns]


def _least_width_of(cell: object) -> int:
    text = visible(str(cell))
    words = min(max(map(len, text.split(" "))), _LONGEST_WORD)
    return words if " " not in text else max(words, -(-len(text) // _MOST_LINES) + 2)


def _laid_out(table: Table, width: int) -> "RenderableType":
    import rich.table

    laid = rich.table.Table(
        box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold", show_edge=False
    )
    least = _least_widths(table)
    fits = sum(least) + _GAP * (len(least) - 1) <= width
    for number, name in enumerate(table.header):
        cells = [row[number] for row in table.rows]
        is_number = any(cells) and all(map(_is_number, cells))
        is_name = all(" " not in str(cell) and len(str(cell)) <= _LONGEST_WORD for cell in cells)
        laid.add_column(
            _text(name),
            justify="right" if is_number else "left",
            no_wrap=is_number or is_name,
            min_width=least[number] if fits else None,
            overflow="fold",
        )
    for row in table.rows:
        laid.add_row(*map(_text, row))
    return laid


def _grid(facts: Facts) -> "RenderableType":
    import rich.table

    grid = rich.table.Table.grid(padding=(0, _GAP, 0, 0))
    grid.add_column(no_wrap=True, style="bold")
    grid.add_column(overflow="fold")
    for word, line in facts.lines:
        text = _text(line)
        text.stylize(_style_of(line.split("  ")[0]), 0, len(line.split("  ")[0]))
        grid.add_row(_text(word), text)
    return grid


def _text(cell: object) -> "Text":
    from rich.text import Text

    text = visible(str(cell))
    return Text(text, _style_of(text))


def _style_of(text: str) -> str:
    speed = _SPEED.match(text)
    if speed is not None:
        return "green" if float(speed[1]) > 1 else "red"
    return _STYLES.get(text, "")


def _is_number(cell: object) -> bool:
    if isinstance(cell, int | float):
        return True
    if cell in ("\N{EN DASH}", "-", ""):
        return True
    try:
        float(str(cell).replace(",", "").removeprefix("~"))
    except ValueError:
        return False
    return True
