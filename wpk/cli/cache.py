"""Show, clear, export or import what is kept: measured trials and compiled kernels.

Trials are exported as JSON lines, which another machine imports. A trial is used again only for the
same problem, template, target, compiler and driver; importing twice adds nothing.

Examples:
    wpk cache show
    wpk cache export trials.jsonl
    wpk cache clear --target h200 --yes
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from wpk.cli.say import say
from wpk.cli.usage import UsageError
from wpk.errors import EngineError, WpkError

if TYPE_CHECKING:
    from collections.abc import Callable

    from wpk.search.loop import CacheFolder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("action", choices=tuple(_ACTIONS), metavar="show|clear|export|import")
    parser.add_argument(
        "file", type=Path, nargs="?", metavar="FILE.jsonl", help="to export to or import from"
    )
    parser.add_argument(
        "--cache", type=Path, metavar="FOLDER", help="default: the user's cache folder"
    )
    parser.add_argument("--yes", action="store_true", help="clear: do it, do not only name it")
    parser.add_argument(
        "--target", metavar="NAME", help="clear: only trials of this target, and no kernels"
    )
    parser.add_argument(
        "--template", metavar="NAME", help="clear: only trials of this template, and no kernels"
    )
    parser.add_argument(
        "--keep-foreign",
        action="store_true",
        help="import: also trials of another GPU than this machine's, which nothing here uses",
    )


def run(arguments: argparse.Namespace) -> int:
    """Do what the action says."""
    from wpk.search.loop import CacheFolder

    _require_usage(arguments)
    _ACTIONS[arguments.action](CacheFolder(arguments.cache), arguments)
    return 0


def _show(places: "CacheFolder", arguments: argparse.Namespace) -> None:
    from wpk.cli.cache_text import cache_text

    del arguments
    say(cache_text(places))


def _clear(places: "CacheFolder", arguments: argparse.Namespace) -> None:
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


def _require_usage(arguments: argparse.Namespace) -> None:
    """Refuse options of another action.

    Raises:
        UsageError: There are any, or the file is missing.
    """
    action, help_ = arguments.action, "see wpk cache --help"
    transfers = action in ("export", "import")
    if transfers and arguments.file is None:
        raise UsageError(f"wpk cache {action} needs a FILE.jsonl", fix=help_)
    if not transfers and arguments.file is not None:
        raise UsageError(f"wpk cache {action} takes no file, got {arguments.file}", fix=help_)
    belongs = {"yes": "clear", "target": "clear", "template": "clear", "keep_foreign": "import"}
    for name, owner in belongs.items():
        if getattr(arguments, name) and action != owner:
            option = name.replace("_", "-")
            raise UsageError(f"--{option} belongs to wpk cache {owner}", fix=help_)


_ACTIONS: "dict[str, Callable[[CacheFolder, argparse.Namespace], None]]" = {
    "show": _show,
    "clear": _clear,
    "export": _export,
    "import": _import,
}
