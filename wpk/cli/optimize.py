"""Turn an ONNX model into a plan.

Examples:
    wpk optimize resnet18.onnx -o resnet18.plan --target h200 --precision fp16
    wpk optimize resnet18.onnx -o resnet18.plan --ops 'conv_*' --budget 5m --lock resnet18.lock
    wpk optimize resnet18.onnx -o again.plan --from-lock resnet18.lock
    wpk optimize resnet18.onnx --target h200 --dry-run
    wpk optimize resnet18.onnx -o resnet18.plan --engine tensorrt --plugin-library libwpk_tensorrt.so
"""

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wpk.cli.say import say
from wpk.cli.usage import UsageError, add_inputs
from wpk.options import BuildOptions, SearchOptions, TensorRTOptions, flag_of, help_of
from wpk.report import ProgressLine

if TYPE_CHECKING:
    from wpk.plan import PlanBundle
    from wpk.search.store import RunRecord
    from wpk.tensorrt_pipeline import TensorRTOutcome

_HELP = "see wpk optimize --help"
_OPTIONS = (*fields(BuildOptions), *fields(SearchOptions))
_TENSORRT = fields(TensorRTOptions)
_SEARCHES = {"skip_templates", *(each.name for each in fields(SearchOptions))}
"""Options that only matter to a search."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("model", type=Path, metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", type=Path, metavar="MODEL.plan", help="the plan to write")
    parser.add_argument(
        "--engine",
        choices=("wpk", "tensorrt"),
        default="wpk",
        help="wpk (default): a plan of wpk's own; tensorrt: an engine of the TensorRT that is installed, in "
        "which generated kernels stand where they are faster",
    )
    _add_options(parser.add_argument_group("what the plan is for"), BuildOptions)
    _add_options(parser.add_argument_group("how it is searched"), SearchOptions)
    _add_work(parser)
    _add_files(parser.add_argument_group("what is written besides, or instead"))
    _add_options(parser.add_argument_group("with --engine tensorrt only"), TensorRTOptions)


def _add_options(parser: "argparse._ActionsContainer", kind: type) -> None:
    """Declare a flag for each field."""
    words = help_of(kind)
    for option in fields(kind):
        how = {name: value for name, value in option.metadata.items() if name != "flag"}
        parser.add_argument(flag_of(option), dest=option.name, help=words[option.name], **how)


def _add_work(parser: argparse.ArgumentParser) -> None:
    """Declare what the work begins with, and how its result is checked."""
    known = parser.add_argument_group("what is known already")
    known.add_argument(
        "--resume",
        metavar="RUN",
        help="go on with an earlier run: with its options, and with all that it has measured",
    )
    known.add_argument(
        "--cache",
        type=Path,
        metavar="FOLDER",
        help="compiled kernels and measured trials (see `wpk cache`); default: the user's cache. "
        "What is there is not measured again",
    )
    checks = parser.add_argument_group("how it is checked")
    checks.add_argument(
        "--check",
        choices=("on", "quick", "off"),
        default="on",
        help="execute and compare every operator and the whole engine before the plan is written, on "
        "the GPU where it measured, else on the CPU (default: on); quick: at the tuned sizes and on "
        "one drawn input only, and without second evaluators of graph passes",
    )
    add_inputs(checks)


def _add_files(parser: "argparse._ActionsContainer") -> None:
    """Declare what is written beside the plan or in its place."""
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
        help="say what would be searched and measured, and for how long; write nothing, whatever is named "
        "to be written",
    )


def run(arguments: argparse.Namespace) -> int:
    """Optimize, and print what was chosen."""
    from wpk.plan import require_folder
    from wpk.report.plans import require_format

    _require_usage(arguments)
    for path in (arguments.output, arguments.report, arguments.lock):
        if path is not None:
            require_folder(path)
    if arguments.report is not None:
        require_format(arguments.report)
    progress = ProgressLine(quiet=arguments.quiet)
    if arguments.dry_run:
        _preview(arguments, progress)
    elif arguments.engine == "tensorrt":
        _say_engine(arguments, _engine(arguments, progress))
    else:
        _say_and_write(arguments, _plan(arguments, progress))
    return 0


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were given, as keyword arguments of `wpk.optimize`."""
    from wpk.pipeline import recall
    from wpk.shape_ranges import parse_shapes

    options = {each.name: getattr(arguments, each.name) for each in _OPTIONS}
    if arguments.shapes is not None:
        options["shapes"] = parse_shapes(arguments.shapes)
    given = {name: value for name, value in options.items() if value is not None}
    if arguments.resume is None:
        return given
    return {**recall(arguments.resume, arguments.cache), **given}


def _plan(arguments: argparse.Namespace, progress: ProgressLine) -> "PlanBundle":
    """Write the plan: found by searching, or built from a lock."""
    from wpk.engine import read_arrays
    from wpk.pipeline import optimize, rebuild

    model, output = arguments.model, arguments.output
    asked = {
        **_options(arguments),
        "cache": arguments.cache,
        "check": arguments.check,
        "inputs": [read_arrays(path) for path in arguments.inputs],
        "progress": progress,
    }
    if arguments.from_lock is not None:
        return rebuild(model, output, arguments.from_lock, **asked)
    entered: list[str] = []

    def on_run(run: "RunRecord") -> None:
        entered.append(run.id.rpartition("-")[2])  # enough to resume it
        progress.note(f"run {run.id}: resume with --resume {entered[-1]}")

    try:
        return optimize(model, output, **asked, resume=arguments.resume, on_run=on_run)
    except KeyboardInterrupt:
        for run in entered:
            progress.note(f"what was measured is kept: go on with --resume {run}")
        raise


def _engine(arguments: argparse.Namespace, progress: ProgressLine) -> "TensorRTOutcome":
    """Write an engine of TensorRT."""
    from wpk.engine import read_arrays
    from wpk.tensorrt_pipeline import optimize_tensorrt

    given = {each.name: getattr(arguments, each.name) for each in _TENSORRT}
    return optimize_tensorrt(
        arguments.model,
        arguments.output,
        tensorrt=TensorRTOptions(**{n: value for n, value in given.items() if value is not None}),
        cache=arguments.cache,
        check=arguments.check,
        inputs=[read_arrays(path) for path in arguments.inputs],
        progress=progress,
        **_options(arguments),
    )


def _say_engine(arguments: argparse.Namespace, outcome: "TensorRTOutcome") -> None:
    """Print what the engine is."""
    from wpk.report import engine_text

    if outcome.description is not None and not arguments.quiet:
        say(*engine_text(outcome.description), "")
    kind = "wpk's own plan, which is faster" if outcome.description is None else "engine"
    say(f"{outcome.remark}\n{kind}: {outcome.path}")


def _preview(arguments: argparse.Namespace, progress: ProgressLine) -> None:
    from wpk.cli.preview_text import preview_text
    from wpk.pipeline import preview

    options = _options(arguments)
    found = preview(arguments.model, **options, cache=arguments.cache, progress=progress)
    say(*preview_text(found))


def _say_and_write(arguments: argparse.Namespace, bundle: "PlanBundle") -> None:
    """Print what the plan is, and write what was asked for beside it."""
    from wpk.assembly import write_lock
    from wpk.report.plans import short_summary, summary, write_report

    written = [f"plan: {arguments.output}"]
    if arguments.report is not None:
        write_report(arguments.report, bundle)
        written.append(f"report: {arguments.report}")
    if arguments.lock is not None:
        write_lock(arguments.lock, bundle)
        written.append(f"lock: {arguments.lock}")
    told = [] if arguments.quiet else (summary if arguments.verbose else short_summary)(bundle)
    say(*told, "\n".join(written))


def _require_usage(arguments: argparse.Namespace) -> None:
    """Refuse options that contradict each other.

    Raises:
        UsageError: They do.
    """
    _require_engine(arguments)
    if arguments.dry_run and arguments.from_lock is not None:
        raise UsageError("--from-lock searches nothing that --dry-run could tell of", fix=_HELP)
    if not arguments.dry_run and arguments.output is None:
        raise UsageError("the following arguments are required: -o/--output", fix=_HELP)
    if arguments.from_lock is not None:
        asked = [each for each in _OPTIONS if getattr(arguments, each.name) is not None]
        searching = [flag_of(each) for each in asked if each.name in _SEARCHES]
        searching += ["--resume"] if arguments.resume is not None else []
        if searching:
            raise UsageError(
                f"--from-lock searches nothing, and {', '.join(searching)} was given", fix=_HELP
            )


def _require_engine(arguments: argparse.Namespace) -> None:
    """Refuse options of the one engine where the other is asked for.

    Raises:
        UsageError: There are some.
    """
    if arguments.engine == "tensorrt":
        others = ("resume", "report", "lock", "from_lock", "dry_run")
        given = ["--" + name.replace("_", "-") for name in others if getattr(arguments, name)]
    else:
        given = [flag_of(each) for each in _TENSORRT if getattr(arguments, each.name) is not None]
    if given:
        raise UsageError(f"--engine {arguments.engine} has no {', '.join(given)}", fix=_HELP)
