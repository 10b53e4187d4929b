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

from wpk.cli.progress import ProgressLine
from wpk.cli.say import say
from wpk.cli.usage import add_inputs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wpk.checks import Scope
    from wpk.plan import Check


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--device", choices=("auto", "gpu", "cpu"), default="auto")
    parser.add_argument(
        "--trust",
        action="store_true",
        help="let a GPU execute the plan's machine code also where it cannot be compared",
    )
    parser.add_argument(
        "--seeds",
        type=_positive,
        metavar="N",
        help="drawn inputs for the whole engine (default: 3; with --check quick 1)",
    )
    parser.add_argument(
        "--check",
        choices=("on", "quick"),
        default="on",
        help="quick: operators alone and the whole engine at the tuned sizes and on one drawn input "
        "only, and no second evaluators of graph passes (default: on)",
    )
    add_inputs(parser)
    parser.add_argument(
        "--rtol",
        type=_not_negative,
        metavar="R",
        help="hold outputs of the whole engine to |y - expected| <= A + R |expected|, as "
        "numpy.allclose does, in place of the limits of the precision (0 where only A is given)",
    )
    parser.add_argument("--atol", type=_not_negative, metavar="A", help="see --rtol")


def run(arguments: argparse.Namespace) -> int:
    """Verify, and print every check."""
    from wpk.backends import open_device
    from wpk.checks import prove_passes, require_inputs, require_passed, verify
    from wpk.engine import compare_machine_code, require_executable, require_same
    from wpk.lowering.model import lower_model
    from wpk.plan import read_plan
    from wpk.report.plans import remarks

    progress = ProgressLine()
    scope = _scope(arguments)
    bundle = read_plan(arguments.plan)
    require_inputs(scope.given, bundle.plan.inputs)
    made = bundle.plan.provenance
    lowered = lower_model(
        arguments.model, made.shapes, bundle.plan.precision, made.skipped_passes, progress
    )
    proof = prove_passes(lowered, scope, progress)
    code = compare_machine_code(bundle, progress)
    say(code)
    sys.stdout.flush()
    with open_device(arguments.device) as device:
        if not device.executes_source and not arguments.trust:
            require_executable(code)
        outcome = verify(bundle, proof, device, progress)
    tables = [
        ("operator alone", "against float64", [(o.name, o.check) for o in outcome.operators]),
        ("rewritten graph", "against the model in float64", [(c.name, c) for c in outcome.passes]),
        ("whole engine", "error", [(check.name, check) for check in outcome.whole]),
    ]
    say("\n\n".join(_table(*each) for each in tables))
    for said in remarks(scope.mode, outcome.whole):
        say(said)
    sys.stdout.flush()
    require_passed(outcome)
    require_same(code)
    return 0


def _table(title: str, words: str, checks: "Iterable[tuple[str, Check]]") -> str:
    from wpk.report import format_table
    from wpk.report.plans import outcome_word

    rows = [[name, outcome_word(check.outcome), check.detail] for name, check in checks]
    return format_table([title, "", words], rows)


def _scope(arguments: argparse.Namespace) -> "Scope":
    """Return the scope of the checks that the options ask for."""
    from wpk.checks import QUICK_SEEDS, SEEDS, Scope, Tolerance
    from wpk.engine import read_arrays

    quick = arguments.check == "quick"
    allowed = (arguments.rtol, arguments.atol)
    return Scope(
        quick=quick,
        seeds=arguments.seeds or (QUICK_SEEDS if quick else SEEDS),
        given=[read_arrays(path) for path in arguments.inputs],
        tolerance=None
        if allowed == (None, None)
        else Tolerance(*(each or 0.0 for each in allowed)),
    )


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
