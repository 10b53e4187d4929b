"""Printing for people: names from models and plans cannot steer the terminal that shows them."""

import logging
import sys

from wpk.report import Block, print_blocks, visible_lines


def say(*blocks: Block) -> None:
    """Print texts and tables, whatever is no plain character written as an escape."""
    print_blocks(*blocks)


def complain(text: str) -> None:
    """Print a text as `say` does, to standard error."""
    print(visible_lines(text), file=sys.stderr)


class PlainFormatter(logging.Formatter):
    """Formats log lines with the same care."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return visible_lines(super().format(record))
