"""Write the report of a plan: a self-contained web page, JSON, or Markdown.

Examples:
    wpk report resnet18.plan -o resnet18.html
    wpk report resnet18.plan -o resnet18.md
"""

import argparse
from pathlib import Path

from wpk.cli.say import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.html|.json|.md")


def run(arguments: argparse.Namespace) -> int:
    """Write the report, and print its path."""
    from wpk.plan import read_plan
    from wpk.report.plans import require_format, write_report

    require_format(arguments.output)
    write_report(arguments.output, read_plan(arguments.plan))
    say(str(arguments.output))
    return 0
