"""Parse the command line, run one command, and turn errors into two lines and an exit code."""

import argparse
import io
import logging
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import NoReturn

from wpk.cli import bench, cache, compare, inspect, optimize, report, run, targets, verify
from wpk.cli.interrupts import INTERRUPTED, interrupts_end_the_process, is_interrupt
from wpk.cli.say import PlainFormatter, complain
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
    try:
        parsed = _parser().parse_args(arguments)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="backslashreplace")  # tables hold signs beyond ASCII
        level = [logging.WARNING, logging.INFO, logging.DEBUG][min(parsed.verbose, 2)]
        lines = logging.StreamHandler(sys.stderr)
        lines.setFormatter(PlainFormatter("wpk: %(message)s"))
        logging.basicConfig(level=level, handlers=[lines], force=True)
        code: int = COMMANDS[parsed.command].run(parsed)
        sys.stdout.flush()
    except BaseException as error:
        code = _failed(error)
    return code


def _failed(error: BaseException) -> int:
    """Say what went wrong and return the exit code. A bug is raised again, and shows its traceback."""
    if is_interrupt(error):
        print("\nwpk: interrupted; nothing is half-written", file=sys.stderr)
        return INTERRUPTED
    if isinstance(error, WpkError):
        complain(f"wpk: error: {error.what}\n  fix: {error.fix}")
        return error.exit_code
    if isinstance(error, BrokenPipeError):  # our reader left, e.g. `wpk inspect ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    raise error


def entry_point() -> NoReturn:
    """Run the installed command and end the process."""
    with interrupts_end_the_process():
        code = main()
    sys.exit(code)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="wpk", description=DESCRIPTION, allow_abbrev=False)
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
        command.add_argument(
            "-v", "--verbose", action="count", default=0, help="say more on stderr; twice for more"
        )
        module.add_arguments(command)
    return parser
