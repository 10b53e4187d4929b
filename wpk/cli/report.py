"""Write the report of a plan as one self-contained web page.

Example:
    wpk report resnet18.plan -o resnet18.html
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE.html")


def run(arguments: argparse.Namespace) -> int:
    """Write the page, and print its path."""
    from wpk.engine.plan_file import read_plan
    from wpk.report.html import write_html

    write_html(arguments.output, read_plan(arguments.plan))
    print(arguments.output)
    return 0
