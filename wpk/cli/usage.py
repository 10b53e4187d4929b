"""Options that several commands share, and wrong usage that the parser itself cannot see."""

import argparse
from pathlib import Path

from wpk.errors import WpkError


class UsageError(WpkError):
    """Options of a command that do not fit together."""

    exit_code = 2


def add_inputs(parser: "argparse._ActionsContainer") -> None:
    """Declare ``--inputs``: arrays to check on."""
    parser.add_argument(
        "--inputs",
        type=Path,
        action="append",
        default=[],
        metavar="X.npz",
        help="arrays by input name, to check on beside drawn ones; repeatable",
    )


def add_trust(parser: "argparse._ActionsContainer") -> None:
    """Declare ``--trust``: to execute machine code unseen."""
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let a GPU execute the plan's machine code without compiling it again to compare",
    )
