"""What ``wpk optimize --dry-run`` prints."""

from collections import Counter

from wpk.report import format_table, visible
from wpk.search.loop import Preview, ProblemPreview
from wpk.search.models import FINALISTS

_ALL = 1000  # an effort that allows so many of a library's implementations means all

_NAME, _WORK = 40, 44


def preview_text(preview: Preview) -> str:
    """Return the problems with their candidates, why templates do not apply, and the sums."""
    measures = preview.tuning is not None
    header = ["operators", "computes", "candidates", "space", "legal", "kept", "bound µs"]
    header += ["estimate µs", *(["known", "to measure"] if measures else [])]
    rows = [_row(problem, measures=measures) for problem in preview.problems]
    return "\n\n".join((format_table(header, rows), "\n".join(_sums(preview))))


def _row(each: ProblemPreview, *, measures: bool) -> list[object]:
    spaces = [shortlist.funnel for shortlist in each.shortlists.templates]
    first, *others = each.operators
    name = visible(first, _NAME) + (f" and {len(others)} more" if others else "")
    best = min(s.estimate for shortlist in each.shortlists.templates for s in shortlist.ranked)
    row: list[object] = [
        name,
        visible(each.problem.words(), _WORK),
        " ".join(counts.template for counts in spaces),
        sum(counts.space for counts in spaces),
        sum(counts.legal for counts in spaces),
        sum(counts.kept for counts in spaces),
        f"{each.shortlists.bound.seconds * 1e6:.2f}",
        f"{best * 1e6:.2f}",
    ]
    if measures:
        row += [each.known, each.fresh if each.measured else "-"]
    return row


def _sums(preview: Preview) -> list[str]:
    operators = sum(len(each.operators) for each in preview.problems)
    bound = sum(len(e.operators) * e.shortlists.bound.seconds for e in preview.problems)
    lines = [
        f"target     {preview.target.name} ({preview.target.arch})",
        f"operators  {operators}, {len(preview.problems)} distinct problems",
        f"bound      {bound * 1e6:.2f} µs for the network: nothing can beat it",
    ]
    return [*lines, *_search(preview), "nothing was compiled, measured or written"]


def _search(preview: Preview) -> list[str]:
    if preview.tuning is None:
        ranked = [sum(len(s.ranked) for s in e.shortlists.templates) for e in preview.problems]
        compiled = sum(min(FINALISTS, count) for count in ranked)
        return [f"search     by models: about {compiled} kernels to compile, none to measure"]
    tuning = preview.tuning
    fresh = sum(each.fresh for each in preview.problems)
    known = sum(each.known for each in preview.problems)
    rounds = f"then {tuning.effort.rounds} rounds of the best {tuning.effort.finalists}"
    limit = "no limit" if preview.limit is None else f"{preview.limit:.0f} s"
    if preview.seconds is None:
        time = "unknown: the tuning store has no trial of this target to estimate it with"
    else:
        time = f"about {preview.seconds:.0f} s, at {preview.pace:.2f} s a trial in the tuning store"
    asked = Counter(name for each in preview.problems for name in each.libraries)
    best = f"its best {tuning.effort.library}" if tuning.effort.library < _ALL else "all it has"
    lines = [
        f"search     {tuning.searcher}: up to {fresh} schedules to measure, {rounds}; {known} are known",
        f"time       {time}; limit: {limit}",
    ]
    lines += (
        f"library    beside that {name}, where it is installed, for {count} problems: {best} for each"
        for name, count in asked.items()
    )
    return lines
