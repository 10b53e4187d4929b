"""Tables on terminals of any width, and in files."""

import fcntl
import io
import os
import pty
import re
import select
import struct
import termios
from collections.abc import Callable

import pytest

from wpk.report import Facts, Table, print_blocks
from wpk.report.blocks import Block

ROWS = [
    ["conv_relu_0", "conv 3x3 of 64 channels to 64", 12.5, "ok"],
    ["gemm_1", "matmul 1 x 512 by 512 x 1000 with a bias", 3.25, "WRONG"],
]
TABLE = Table(["operator", "computes", "time", "check"], ROWS, ("computes",))
Shown = Callable[[int, Block], str]


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """What a terminal of so many columns is sent."""
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")

    def show(columns: int, block: Block) -> str:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        with os.fdopen(theirs, "w") as stream:
            print_blocks(block, stream=stream)
            text = ""
            while select.select([ours], [], [], 0.1)[0]:
                text += os.read(ours, 100_000).decode()
        os.close(ours)
        return text.replace("\r\n", "\n")

    return show


def _plain(text: str) -> list[str]:
    return re.sub("\x1b\\[[0-9;]*m", "", text).splitlines()


@pytest.mark.parametrize("columns", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(shown: Shown, columns: int) -> None:
    facts = Facts([("checks", "right " * 60), ("warning", "x" * 300)])
    for block in (TABLE, facts, "word " * 100):
        assert max(map(len, _plain(shown(columns, block)))) <= columns


def test_a_narrow_terminal_leaves_columns_out_and_says_so(shown: Shown) -> None:
    wide, narrow = shown(100, TABLE), shown(34, TABLE)
    assert "matmul 1 x 512 by 512 x 1000 with a bias" in wide
    assert "left out" not in wide
    assert "matmul" not in narrow
    assert "computes" in narrow.split("left out", 1)[1]


def test_outcomes_have_colours_unless_they_are_unwanted(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = shown(100, TABLE)
    assert "\x1b[32mok" in text
    assert "\x1b[1;31mWRONG" in text
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[3" not in shown(100, TABLE)


def test_a_file_gets_a_row_a_line_and_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = io.StringIO()
    print_blocks(TABLE, "end", stream=stream)
    assert stream.getvalue().splitlines() == [
        "operator     computes                                  time  check",
        "conv_relu_0  conv 3x3 of 64 channels to 64             12.5  ok",
        "gemm_1       matmul 1 x 512 by 512 x 1000 with a bias  3.25  WRONG",
        "",
        "end",
    ]


def test_what_a_cell_holds_is_shown_and_not_obeyed() -> None:
    stream = io.StringIO()
    print_blocks(Table(["[red]a"], [["one\ntwo\x1b[2J[/]"]]), stream=stream)
    assert stream.getvalue() == "[red]a\none\\ntwo\\x1b[2J[/]\n"
