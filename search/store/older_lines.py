"""Lines of tuning stores of older schemas, as the schema of today has them."""

from dataclasses import fields
from typing import Any

from wpk.codec import FieldError
from wpk.options import BuildOptions, SearchOptions

_NAMES_SEARCHERS = 3
"""The first schema whose trials say who proposed them."""

_SKIPS_TEMPLATES = 4
"""The first schema whose runs say which schedule templates they left out; before, none could be."""

_REMEMBERS_OPTIONS = 5
"""The first schema whose runs hold options as `wpk.options` has them."""

_FALLS_BACK = 6
"""The first schema whose runs say what becomes of nodes without a kernel, which were refused before, and
whose shapes are ranges."""

_NAMES_PRUNING = 7
"""The first schema whose runs say what narrowed the schedules down; before, there was one score."""

_SAYS_FORMS = 8
"""The first schema whose runs say whether forms compete, which before did not."""

_GIVES_FORMS = 9
"""The first schema whose runs say which form they were given; before, none could be."""

_FIXED = "fixed"

_OLDER_OPTIONS = {
    **{name: name for name in ("target", "precision", "shapes", "effort", "budget", "operators")},
    "skipped_passes": "skip_passes",
    "skipped_templates": "skip_templates",
    "searcher": "search",
}
"""Options as older schemas call them, and as they are called now."""


def run_of_today(data: Any, schema: int) -> Any:
    """Return what a line says of a run as one of today would; what is no run stays what it is.

    Raises:
        FieldError: An option is missing.
    """
    if schema == 1 and isinstance(data, dict):
        data = {**data, "request": None}  # schema 2 added it
    request = data.get("request") if isinstance(data, dict) else None
    if schema < _SKIPS_TEMPLATES and isinstance(request, dict):
        request = {**request, "skipped_templates": []}
    if schema < _REMEMBERS_OPTIONS and isinstance(data, dict):
        data = {key: value for key, value in data.items() if key != "argv"}
        if isinstance(request, dict):
            data["request"] = _options(request, data.get("seed"))
    if schema < _FALLS_BACK and isinstance(data, dict):
        data = {**data, "request": _with_ranges(data.get("request"))}
    if schema < _NAMES_PRUNING and isinstance(data, dict):
        data = {**data, "request": _with_pruning(data.get("request"))}
    if schema < _SAYS_FORMS and isinstance(data, dict):
        data = {**data, "request": _with_fixed_forms(data.get("request"))}
    if schema < _GIVES_FORMS and isinstance(data, dict):
        data = {**data, "request": _without_form(data.get("request"))}
    return data


def trial_of_today(data: Any, schema: int) -> Any:
    """Return what a line says of a trial as one of today would."""
    if schema < _NAMES_SEARCHERS and isinstance(data, dict):
        data = {**data, "searcher": ""}
    return data


def _options(request: dict[str, Any], seed: Any) -> dict[str, Any]:
    """A request of an older schema, whose options were called otherwise."""
    missing = [name for name in _OLDER_OPTIONS if name not in request]
    if missing:
        raise FieldError(f"run.request.{missing[0]}", "missing")
    renamed = {new: request[old] for old, new in _OLDER_OPTIONS.items()}
    renamed |= {"seed": seed, "fallback": "off", "prune": "waves", "forms": _FIXED}
    renamed |= {"changed_sites": []}
    return {
        **{name: value for name, value in request.items() if name not in _OLDER_OPTIONS},
        "build": {each.name: renamed[each.name] for each in fields(BuildOptions)},
        "search": {each.name: renamed[each.name] for each in fields(SearchOptions)},
    }


def _with_pruning(request: Any) -> Any:
    """A request of a schema before `_NAMES_PRUNING`."""
    search = request.get("search") if isinstance(request, dict) else None
    return (
        {**request, "search": {**search, "prune": "waves"}} if isinstance(search, dict) else request
    )


def _with_fixed_forms(request: Any) -> Any:
    """A request of a schema before `_SAYS_FORMS`."""
    search = request.get("search") if isinstance(request, dict) else None
    if not isinstance(search, dict):
        return request
    return {**request, "search": {**search, "forms": _FIXED}}


def _without_form(request: Any) -> Any:
    """A request of a schema before `_GIVES_FORMS`."""
    build = request.get("build") if isinstance(request, dict) else None
    if not isinstance(build, dict):
        return request
    return {**request, "build": {**build, "changed_sites": []}}


def _with_ranges(request: Any) -> Any:
    """A request of a schema before `_FALLS_BACK`, each of whose shapes is the only one of its range."""
    build = request.get("build") if isinstance(request, dict) else None
    if not isinstance(build, dict) or not isinstance(build.get("shapes"), dict):
        return request
    ranges = {name: [shape] for name, shape in build["shapes"].items()}
    return {**request, "build": {**build, "fallback": "off", "shapes": ranges}}
