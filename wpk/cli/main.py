"""Parse the command line, run one command, and turn errors into two lines and an exit code."""

import argparse
import io
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from wpk.cli import bench, cache, compare, inspect, optimize, report, run, targets, verify
from wpk.cli.interrupts import INTERRUPTED, interrupts_end_the_process, is_interrupt
from wpk.cli.parser import Parser
from wpk.cli.say import PlainFormatter, complain
from wpk.cli.usage import UsageError
from wpk.errors import WpkError
from wpk.version import VERSION

DESCRIPTION = "wpk: from an ONNX model to the fastest provably correct engine for an NVIDIA GPU."

COMMANDS: dict[str, ModuleType] = {
    "optimize": optimize,
    "run": run,
    "bench": bench,
    "verify": verify,
    "inspect": inspect,
    "report": report,
    "compare": compare,
    "cache": cache,
    "targets": targets,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; return the exit code.

    0 done; 1 failed; 2 wrong usage (argparse exits itself); 3 the numbers disagree; 130 interrupted.
    """
    verbose = 0
    try:
        parsed = _parser().parse_args(arguments)
        verbose = parsed.verbose
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # tables hold signs beyond ASCII
        _log(verbose, parsed.log_file)
        code: int = COMMANDS[parsed.command].run(parsed)
        sys.stdout.flush()
    except BaseException as error:
        code = _failed(error, verbose)
    return code


def _log(verbose: int, file: Path | None) -> None:
    """Send log lines to stderr, and all of them to the file that was asked for.

    Raises:
        UsageError: The file cannot be written.
    """
    lines = logging.StreamHandler(sys.stderr)
    lines.setLevel([logging.WARNING, logging.INFO, logging.DEBUG][min(verbose, 2)])
    lines.setFormatter(PlainFormatter("wpk: %(message)s"))
    handlers: list[logging.Handler] = [lines]
    if file is not None:
        try:
            kept = logging.FileHandler(file, "w", encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"the log file {file} cannot be written: {error.strerror}",
                fix="name another: --log-file FILE",
            ) from error
        kept.setFormatter(PlainFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        handlers.append(kept)
    for handler in logging.getLogger().handlers:
        handler.close()
    level = logging.DEBUG if file is not None else lines.level
    logging.basicConfig(level=level, handlers=handlers, force=True)


def _failed(error: BaseException, verbose: int) -> int:
    """Say what went wrong and return the exit code. A bug is raised again, and shows its traceback."""
    if is_interrupt(error):
        print("\nwpk: interrupted; nothing is half-written", file=sys.stderr)
        return INTERRUPTED
    if isinstance(error, WpkError):
        logging.getLogger("wpk").debug("failed", exc_info=error)
        complain("".join(_causes(error, verbose)) + f"wpk: error: {error}")
        return error.exit_code
    if isinstance(error, BrokenPipeError):  # our reader left, e.g. `wpk inspect ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    raise error


def _causes(error: WpkError, verbose: int) -> list[str]:
    """What stands behind an error, for who asks for more: -v its causes, -vv where it came up."""
    if verbose > 1:
        return []  # the log has the traceback
    causes, cause = [], error.__cause__
    while verbose and cause is not None:
        what = cause.what if isinstance(cause, WpkError) else str(cause).strip()
        causes.append(f"wpk: cause: {type(cause).__name__}: {what}\n")
        cause = cause.__cause__
    if verbose:
        place = traceback.extract_tb(error.__traceback__)[-1]
        causes.append(f"wpk: raised in {place.filename}:{place.lineno}, {place.name}\n")
    return causes


def entry_point() -> NoReturn:
    """Run the installed command and end the process."""
    with interrupts_end_the_process():
        code = main()
    sys.exit(code)


def _parser() -> Parser:
    parser = Parser(prog="wpk", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"wpk {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        text = (module.__doc__ or "").strip()
        command = commands.add_parser(
            name,
            help=text.splitlines()[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for each in module.add_arguments(command) or [command]:
            _add_what_is_said(each)
    return parser


def _add_what_is_said(parser: argparse.ArgumentParser) -> None:
    """Declare what all commands have."""
    said = parser.add_argument_group("what is said on the way")
    said.add_argument(
        "-v",
        "--verbose",
        action="count",
        default=0,
        help="say more on stderr, and of a failure its causes; twice for tracebacks and details",
    )
    said.add_argument(
        "-q", "--quiet", action="store_true", help="no progress; results and errors only"
    )
    said.add_argument(
        "--log-file",
        type=Path,
        metavar="FILE",
        help="also write every stage and detail, with its time",
    )
