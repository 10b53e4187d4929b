"""Turn an ONNX model into a plan.

Examples:
    wpk optimize resnet18.onnx -o resnet18.plan --target h200 --precision fp16
    wpk optimize resnet18.onnx -o resnet18.plan --ops 'conv_*' --budget 5m --lock resnet18.lock
    wpk optimize resnet18.onnx -o again.plan --from-lock resnet18.lock
    wpk optimize resnet18.onnx --target h200 --dry-run
"""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpk.cli.say import say
from wpk.options import BuildOptions, SearchOptions, flag_of, help_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from wpk.cli.progress import ProgressLine
    from wpk.plan import PlanBundle
    from wpk.search.store import RunRecord

_HELP = "see wpk optimize --help"
_OPTIONS = (*fields(BuildOptions), *fields(SearchOptions))
_SEARCHES = {"skip_templates", *(each.name for each in fields(SearchOptions))}
"""Options that only matter to a search."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", type=Path, metavar="MODEL.plan")
    for kind in (BuildOptions, SearchOptions):
        words = help_of(kind)
        for option in fields(kind):
            how = {name: value for name, value in option.metadata.items() if name != "flag"}
            parser.add_argument(flag_of(option), dest=option.name, help=words[option.name], **how)
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
    from wpk.cli.progress import ProgressLine
    from wpk.plan import require_folder
    from wpk.report.formats import require_format

    _require_usage(arguments)
    for path in (arguments.output, arguments.report, arguments.lock):
        if path is not None:
            require_folder(path)
    if arguments.report is not None:
        require_format(arguments.report)
    progress = ProgressLine()
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

    options = {each.name: getattr(arguments, each.name) for each in _OPTIONS}
    if arguments.shapes is not None:
        options["shapes"] = parse_shapes(arguments.shapes)
    given = {name: value for name, value in options.items() if value is not None}
    if arguments.resume is None:
        return given
    from wpk.pipeline import recall

    return {**recall(arguments.resume, arguments.cache), **given}


def _optimized(arguments: argparse.Namespace, progress: "ProgressLine") -> "PlanBundle":
    from wpk.pipeline import optimize

    entered: list[RunRecord] = []

    def on_run(run: "RunRecord") -> None:
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


def _rebuilt(arguments: argparse.Namespace, progress: "ProgressLine") -> "PlanBundle":
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


def _preview(arguments: argparse.Namespace, progress: "ProgressLine") -> int:
    from wpk.pipeline import preview
    from wpk.report.preview import preview_text

    options = _options(arguments)
    say(preview_text(preview(arguments.model, **options, cache=arguments.cache, progress=progress)))
    return 0


def _write_others(arguments: argparse.Namespace, bundle: "PlanBundle") -> None:
    from wpk.assembly import write_lock
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
            flags = ", ".join("--" + name.replace("_", "-") for name in given)
            raise UsageError(f"--dry-run writes nothing, and {flags} was given", fix=_HELP)
    elif arguments.output is None:
        raise UsageError("the following arguments are required: -o/--output", fix=_HELP)
    if arguments.from_lock is not None:
        decided = [each for each in _OPTIONS if each.name in _SEARCHES]
        searching = [flag_of(e) for e in decided if getattr(arguments, e.name) is not None]
        searching += ["--resume"] if arguments.resume is not None else []
        if searching:
            raise UsageError(
                f"--from-lock searches nothing, and {', '.join(searching)} was given", fix=_HELP
            )
