"""Show, prune, clear, export or import what is kept: measured trials and compiled kernels.

Trials are exported as JSON lines, which another machine imports. A trial is used again only for the
same problem, template, target, compiler and driver; importing twice adds nothing.

Examples:
    wpk cache show
    wpk cache prune --keep 500MiB --unused 30d
    wpk cache export trials.jsonl
    wpk cache clear --target h200 --yes
"""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from wpk.cli.say import say
from wpk.errors import EngineError, WpkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wpk.search.loop import CacheFolder

_BYTES = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SECONDS = {"h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}


def add_arguments(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    """Declare a command for each thing to do, and return their parsers."""
    parsers = []
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for name, function in _ACTIONS.items():
        text = function.__doc__ or ""
        action = actions.add_parser(
            name, help=text.splitlines()[0], description=text, allow_abbrev=False
        )
        parsers.append(action)
        action.add_argument(
            "--cache", type=Path, metavar="FOLDER", help="default: the user's cache folder"
        )
        if name in ("export", "import"):
            action.add_argument("file", type=Path, metavar="FILE.jsonl")
        _add_options(name, action)
    return parsers


def _add_options(name: str, action: argparse.ArgumentParser) -> None:
    if name == "prune":
        action.add_argument(
            "--keep",
            type=_size,
            metavar="SIZE",
            help="how much may stay, e.g. 500MiB (default: 2GiB)",
        )
        action.add_argument(
            "--unused",
            type=_age,
            metavar="AGE",
            help="also remove what was not used for so long, e.g. 30d",
        )
    if name == "clear":
        action.add_argument("--yes", action="store_true", help="do it, do not only name it")
        for what in ("target", "template"):
            action.add_argument(
                f"--{what}", metavar="NAME", help=f"only trials of this {what}, and no kernels"
            )
    if name == "import":
        action.add_argument(
            "--keep-foreign",
            action="store_true",
            help="also trials of another GPU than this machine's, which nothing here uses",
        )


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    from wpk.search.loop import CacheFolder

    _ACTIONS[arguments.action](CacheFolder(arguments.cache), arguments)
    return 0


def _show(places: "CacheFolder", arguments: argparse.Namespace) -> None:
    """Say what is kept, where, and how large it is."""
    from wpk.cli.cache_text import cache_text

    del arguments
    say(*cache_text(places))


def _prune(places: "CacheFolder", arguments: argparse.Namespace) -> None:
    """Remove the compiled kernels that were used least recently; trials stay.

    A kernel that is needed again is compiled again.
    """
    from wpk.build import prune
    from wpk.report import byte_size
    from wpk.search.loop import KEEP_BYTES

    there = places.compiled()
    keep = arguments.keep
    if keep is None:
        keep = KEEP_BYTES
    removed = prune(there, keep_bytes=keep, unused_seconds=arguments.unused)
    freed = sum(each.bytes for each in removed)
    left = sum(each.bytes for each in there) - freed
    say(
        f"removed {len(removed)} of {len(there)} compiled kernels, {byte_size(freed)}; "
        f"{byte_size(left)} are left ({places.path})"
    )


def _clear(places: "CacheFolder", arguments: argparse.Namespace) -> None:
    """Remove everything, or the trials of a target or a template."""
    from wpk.cli.cache_text import clearable
    from wpk.search.store import TuningStore

    words = clearable(places, arguments.target, arguments.template)
    if words and not arguments.yes:
        raise WpkError(
            f"this would remove {words} from {places.path}; nothing was removed",
            fix="give --yes to remove them; wpk cache export keeps a copy of the trials",
        )
    if words and places.store.is_file():
        with TuningStore(places.store) as store:
            store.clear(target=arguments.target, template=arguments.template)
    if words and not (arguments.target or arguments.template):
        places.kernels.clear()
    say(f"removed {words or 'nothing: there is none of it'} ({places.path})")


def _export(places: "CacheFolder", arguments: argparse.Namespace) -> None:
    """Write all trials as JSON lines, for another machine."""
    from wpk.plan import atomic_file
    from wpk.search.store import TuningStore, export_lines, summarize

    if not places.store.is_file():
        raise WpkError(
            f"there are no trials: {places.store} does not exist",
            fix="name the folder that was tuned with: --cache FOLDER",
        )
    with TuningStore(places.store) as store, atomic_file(arguments.file) as stream:
        for line in export_lines(store):
            stream.write(line.encode())
        trials = summarize(store).trials
    say(f"{trials} trials written to {arguments.file}")


def _import(places: "CacheFolder", arguments: argparse.Namespace) -> None:
    """Add the trials that another machine has exported."""
    from wpk.search.loop import setup_here
    from wpk.search.store import TuningStore, import_lines

    here = setup_here()  # None without a GPU: then no trial is more foreign than another
    try:
        with arguments.file.open(encoding="utf-8") as lines, TuningStore(places.store) as store:
            name = arguments.file.name
            done = import_lines(store, lines, name, None if arguments.keep_foreign else here)
    except (OSError, UnicodeDecodeError) as error:
        raise EngineError(
            f"{arguments.file} cannot be read: {getattr(error, 'strerror', None) or error}",
            fix="give the path of a file that wpk cache export wrote",
        ) from error
    say(f"{done.added} trials added to {places.store}; {done.present} were there already")


def _size(text: str) -> int:
    return round(_number(text, _BYTES))


def _age(text: str) -> float:
    return _number(text, _SECONDS)


def _number(text: str, units: "dict[str, int] | dict[str, float]") -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]+)", text)
    if found is None or found[2].lower() not in units:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no number with one of the units {', '.join(units)}"
        )
    return float(found[1]) * units[found[2].lower()]


_ACTIONS: "dict[str, Callable[[CacheFolder, argparse.Namespace], None]]" = {
    "show": _show,
    "prune": _prune,
    "clear": _clear,
    "export": _export,
    "import": _import,
}
