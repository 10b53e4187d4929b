"""Compare a plan with the model that it was made from; exit code 3 where the numbers disagree.

The whole engine is compared with ONNX Runtime on random inputs, and every operator alone with a
float64 reference of the ONNX nodes that it computes.

Example:
    wpk verify resnet18.plan resnet18.onnx --device cpu
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("--device", choices=("auto", "gpu", "cpu"), default="auto")
    parser.add_argument(
        "--seeds",
        type=_positive,
        default=3,
        metavar="N",
        help="random inputs for the whole engine (default: 3)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Verify, and print every check."""
    from wpk.checks.verification import require_passed, verify
    from wpk.cli.progress import Progress
    from wpk.engine.devices import open_for_checks
    from wpk.lowering.model import lower_model
    from wpk.plans.plan_file import read_plan
    from wpk.report.table import format_table

    progress = Progress()
    bundle = read_plan(arguments.plan)
    made = bundle.plan.provenance
    lowered = lower_model(
        arguments.model, made.shapes, bundle.plan.precision, made.skipped_passes, progress
    )
    with open_for_checks(arguments.device) as device:
        outcome = verify(bundle, lowered, arguments.model, device, arguments.seeds, progress)
    rows = [[o.name, _word(o.check.passed), o.check.detail] for o in outcome.operators]
    print(format_table(["operator alone", "", "against float64"], rows))
    whole = [[check.name, _word(check.passed), check.detail] for check in outcome.whole]
    print("\n" + format_table(["whole engine", "", "error"], whole), flush=True)
    require_passed(outcome)
    return 0


def _word(passed: bool) -> str:
    return "ok" if passed else "WRONG"


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is less than 1")
    return number
