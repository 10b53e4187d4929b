"""Compare two plans of one model, operator by operator.

Times are those that the plans hold: nothing is executed.

Example:
    wpk compare before.plan after.plan
"""

import argparse
import json
from pathlib import Path

from wpk.cli.say import say


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("first", type=Path, metavar="A.plan")
    parser.add_argument("second", type=Path, metavar="B.plan")
    parser.add_argument("--json", action="store_true", help="everything, in seconds, for programs")


def run(arguments: argparse.Namespace) -> int:
    """Print the comparison."""
    from wpk.codec import encode
    from wpk.plan import read_plan
    from wpk.report.plans import PlanComparison, compare_plans, compare_text

    first, second = (read_plan(path).plan for path in (arguments.first, arguments.second))
    comparison = compare_plans(first, second)
    if arguments.json:
        print(json.dumps(encode(comparison, PlanComparison), indent=1, allow_nan=False))
    else:
        say(*compare_text(comparison, str(arguments.first), str(arguments.second)))
    return 0
