"""Turn an ONNX model into a plan.

Examples:
    wpk optimize resnet18.onnx -o resnet18.plan --target h200 --precision fp16
    wpk optimize resnet18.onnx -o resnet18.plan --ops 'conv_*' --budget 5m --lock resnet18.lock
    wpk optimize resnet18.onnx -o again.plan --from-lock resnet18.lock
    wpk optimize resnet18.onnx --target h200 --dry-run
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpk.cli.say import say

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from wpk.cli.progress import Progress
    from wpk.plans.plan import PlanBundle
    from wpk.search.store_record import Run

_HELP = "see wpk optimize --help"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", type=Path, metavar="MODEL.plan")
    parser.add_argument(
        "--target",
        help="GPU to compile for (see `wpk targets`), its sm_XY, or a target file; "
        "auto (default): the GPU of this machine",
    )
    parser.add_argument(
        "--precision",
        choices=("fp32", "tf32", "fp16", "bf16"),
        help="what multiplications may use; fp32 is strict (default)",
    )
    parser.add_argument(
        "--shapes",
        metavar="NAME:1x3x224x224[,…]",
        help="shapes of inputs that the model leaves free; -1 keeps a batch free",
    )
    parser.add_argument(
        "--skip-pass",
        action="append",
        metavar="NAME",
        help="a graph pass not to run; repeatable",
    )
    parser.add_argument(
        "--skip-template",
        action="append",
        metavar="NAME",
        help="a schedule template not to use; repeatable",
    )
    parser.add_argument(
        "--search",
        choices=("auto", "static", "genetic", "ppo", "evolution", "random", "exhaustive"),
        help="static: models choose; a searcher's name: it proposes and the GPU of this machine "
        "decides; auto (default): genetic and PPO where the target's GPU is here, else static",
    )
    parser.add_argument(
        "--effort",
        type=int,
        choices=range(4),
        help="how thoroughly to measure: 0 a minute, 1 minutes (default), 2 half an hour, 3 to the end",
    )
    parser.add_argument(
        "--budget", metavar="30m", help="what measuring may cost, e.g. 90s, 2h or '400 trials'"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="fixes the search (default: 0)")
    parser.add_argument(
        "--ops",
        action="append",
        metavar="GLOB",
        help="measure only operators of these names, e.g. 'conv_*'; the models choose for the others; "
        "repeatable",
    )
    parser.add_argument(
        "--resume",
        metavar="RUN",
        help="go on with an earlier run: with its options, and with all that it has measured",
    )
    parser.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="compiled kernels and measured trials (see `wpk cache`); default: the user's cache. "
        "What is there is not measured again",
    )
    parser.add_argument(
        "--check",
        choices=("on", "quick", "off"),
        default="on",
        help="execute and compare every operator and the whole engine before the plan is written, on "
        "the GPU where it measured, else on the CPU (default: on); quick: at the tuned sizes and on "
        "one drawn input only, and without second evaluators of graph passes",
    )
    parser.add_argument(
        "--inputs",
        type=Path,
        action="append",
        default=[],
        metavar="X.npz",
        help="arrays by input name, to check on beside drawn ones; repeatable",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE.html|.json|.md",
        help="also write the report, in the form that the name ends in",
    )
    parser.add_argument(
        "--lock", type=Path, metavar="FILE", help="also write every choice, to build the plan again"
    )
    parser.add_argument(
        "--from-lock",
        type=Path,
        metavar="FILE",
        help="build the plan of a lock again, the same to the byte, without searching or measuring",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="say what would be searched and measured, and for how long; write nothing",
    )


def run(arguments: argparse.Namespace) -> int:
    """Optimize, and print what was chosen."""
    from wpk.cli.progress import Progress
    from wpk.plans.atomic_file import require_folder
    from wpk.report.formats import require_format

    _require_usage(arguments)
    for path in (arguments.output, arguments.report, arguments.lock):
        if path is not None:
            require_folder(path)
    if arguments.report is not None:
        require_format(arguments.report)
    progress = Progress()
    if arguments.dry_run:
        return _preview(arguments, progress)
    if arguments.from_lock is not None:
        bundle = _rebuilt(arguments, progress)
    else:
        bundle = _optimized(arguments, progress)
    _write_others(arguments, bundle)
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as keyword arguments of `wpk.optimize`."""
    from wpk.free_shapes import parse_shapes

    options = {
        "target": arguments.target,
        "precision": arguments.precision,
        "shapes": None if arguments.shapes is None else parse_shapes(arguments.shapes),
        "skip_passes": arguments.skip_pass,
        "skip_templates": arguments.skip_template,
        "search": arguments.search,
        "effort": arguments.effort,
        "budget": arguments.budget,
        "seed": arguments.seed,
        "operators": None if arguments.ops is None else tuple(arguments.ops),
    }
    given = {name: value for name, value in options.items() if value is not None}
    if arguments.resume is None:
        return given
    from wpk.pipeline import recall

    return {**recall(arguments.resume, arguments.cache), **given}


def _optimized(arguments: argparse.Namespace, progress: "Progress") -> "PlanBundle":
    from wpk.pipeline import optimize

    entered: list[Run] = []

    def on_run(run: "Run") -> None:
        entered.append(run)
        progress.note(f"run {run.id}: resume with --resume {short_name(run.id)}")

    try:
        return optimize(
            arguments.model,
            arguments.output,
            **_options(arguments),
            cache=arguments.cache,
            resume=arguments.resume,
            check=arguments.check,
            inputs=_given(arguments),
            progress=progress,
            on_run=on_run,
        )
    except KeyboardInterrupt:
        for run in entered:
            progress.note(f"what was measured is kept: go on with --resume {short_name(run.id)}")
        raise


def _rebuilt(arguments: argparse.Namespace, progress: "Progress") -> "PlanBundle":
    from wpk.pipeline import rebuild

    return rebuild(
        arguments.model,
        arguments.output,
        arguments.from_lock,
        **_options(arguments),
        cache=arguments.cache,
        check=arguments.check,
        inputs=_given(arguments),
        progress=progress,
    )


def _given(arguments: argparse.Namespace) -> "list[Mapping[str, NDArray[np.generic]]]":
    from wpk.engine import read_arrays

    return [read_arrays(path) for path in arguments.inputs]


def _preview(arguments: argparse.Namespace, progress: "Progress") -> int:
    from wpk.pipeline import preview
    from wpk.report.preview import preview_text

    options = _options(arguments)
    say(preview_text(preview(arguments.model, **options, cache=arguments.cache, progress=progress)))
    return 0


def _write_others(arguments: argparse.Namespace, bundle: "PlanBundle") -> None:
    from wpk.plans.lock import write_lock
    from wpk.report.formats import write_report
    from wpk.report.terminal import summary

    say(summary(bundle.plan))
    say(f"\nplan: {arguments.output}")
    if arguments.report is not None:
        write_report(arguments.report, bundle)
        say(f"report: {arguments.report}")
    if arguments.lock is not None:
        write_lock(arguments.lock, bundle.plan)
        say(f"lock: {arguments.lock}")


def short_name(run: str) -> str:
    """The part of a run's name that is enough to resume it."""
    return run.rpartition("-")[2]


def _require_usage(arguments: argparse.Namespace) -> None:
    """Refuse options that contradict each other.

    Raises:
        UsageError: They do.
    """
    from wpk.cli.usage import UsageError

    if arguments.dry_run:
        writes = ("output", "report", "lock", "from_lock")
        given = [name for name in writes if getattr(arguments, name) is not None]
        if given:
            raise UsageError(f"--dry-run writes nothing, and {_flags(given)} was given", fix=_HELP)
    elif arguments.output is None:
        raise UsageError("the following arguments are required: -o/--output", fix=_HELP)
    if arguments.from_lock is not None:
        decided = ("skip_template", "search", "effort", "budget", "seed", "ops", "resume")
        given = [name for name in decided if getattr(arguments, name) is not None]
        if given:
            raise UsageError(
                f"--from-lock searches nothing, and {_flags(given)} was given", fix=_HELP
            )


def _flags(names: list[str]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)
