"""Compare a plan with the model that it was made from; exit code 3 where they disagree.

The kernels are compiled again, which must give the plan's machine code to the byte. The whole engine
is compared with ONNX Runtime on drawn inputs and on those given, and every operator alone with a
float64 reference of the ONNX nodes that it computes. A comparison that would come out the same for a
wrong engine is inconclusive, and machine code of another NVRTC not comparable: both say why, and the
exit code is 0 then.

Examples:
    wpk verify resnet18.plan resnet18.onnx --device cpu
    wpk verify resnet18.plan resnet18.onnx --inputs cat.npz --inputs dog.npz --rtol 1e-3 --atol 1e-5
"""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from wpk.cli.say import say
from wpk.cli.usage import UsageError, add_inputs
from wpk.file_kinds import FileKind, kind_of_file
from wpk.report import ProgressLine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wpk.plan import Check
    from wpk.report import Block


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    where = parser.add_argument_group("where it is executed")
    where.add_argument("--device", choices=("auto", "gpu", "cpu"), default="auto")
    where.add_argument(
        "--trust",
        action="store_true",
        help="let a GPU execute the plan's machine code also where it cannot be compared",
    )
    what = parser.add_argument_group("what is compared, and how closely")
    what.add_argument(
        "--seeds",
        type=_positive,
        metavar="N",
        help="drawn inputs for the whole engine (default: 3; with --check quick 1)",
    )
    what.add_argument(
        "--check",
        choices=("on", "quick"),
        default="on",
        help="quick: operators alone and the whole engine at the tuned sizes and on one drawn input "
        "only, and no second evaluators of graph passes (default: on)",
    )
    add_inputs(what)
    what.add_argument(
        "--rtol",
        type=_not_negative,
        metavar="R",
        help="hold outputs of the whole engine to |y - expected| <= A + R |expected|, as "
        "numpy.allclose does, in place of the limits of the precision (0 where only A is given)",
    )
    what.add_argument("--atol", type=_not_negative, metavar="A", help="see --rtol")


def run(arguments: argparse.Namespace) -> int:
    """Verify, and print every check."""
    from wpk.commands import compare, scope_asked
    from wpk.engine import read_arrays
    from wpk.report.plans import remarks

    _require_order(arguments)
    given = [read_arrays(path) for path in arguments.inputs]
    scope = scope_asked(arguments.check, arguments.seeds, given, arguments.rtol, arguments.atol)
    found = compare(
        arguments.plan,
        arguments.model,
        scope,
        device=arguments.device,
        trust=arguments.trust,
        progress=ProgressLine(quiet=arguments.quiet),
    )
    outcome = found.checks
    say(
        _table("operator alone", "against float64", ((o.name, o.check) for o in outcome.operators)),
        _table(
            "rewritten graph", "against the model in float64", ((c.name, c) for c in outcome.passes)
        ),
        _table("whole engine", "error", ((check.name, check) for check in outcome.whole)),
        "\n".join([str(found.machine_code), *remarks(scope.mode, outcome.whole)]),
    )
    sys.stdout.flush()
    found.require()
    return 0


def _require_order(arguments: argparse.Namespace) -> None:
    """Refuse a model and its plan the other way round.

    Raises:
        UsageError: They are.
    """
    kinds = kind_of_file(arguments.plan), kind_of_file(arguments.model)
    if kinds == (FileKind.MODEL, FileKind.PLAN):
        raise UsageError(
            f"{arguments.plan} is {kinds[0].value}, {arguments.model} {kinds[1].value}: they are swapped",
            fix=f"the plan comes first: wpk verify {arguments.model} {arguments.plan}",
        )


def _table(title: str, words: str, checks: "Iterable[tuple[str, Check]]") -> "Block":
    from wpk.report import Table
    from wpk.report.plans import outcome_word

    rows = [[name, outcome_word(check.outcome), check.detail] for name, check in checks]
    return Table([title, "", words], rows)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number


def _not_negative(text: str) -> float:
    number = float(text)
    if not 0.0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 up")
    return number
