"""What ``wpk optimize --dry-run`` prints."""

from collections import Counter

from wpk.problems import Problem, lifted
from wpk.report import Block, Facts, Table, visible
from wpk.search.loop import Preview, ProblemPreview
from wpk.search.models import FINALISTS

_ALL = 1000  # an effort that allows so many of a library's implementations means all

_NAME, _WORK = 40, 44


def preview_text(preview: Preview) -> list[Block]:
    """Return the problems with their candidates, why templates do not apply, and the sums."""
    measures = preview.tuning is not None
    header = ["operators", "computes", "candidates", "space", "legal", "kept", "bound µs"]
    header += ["estimate µs", *(["known", "to measure"] if measures else [])]
    rows = [_row(problem, measures=measures) for problem in preview.problems]
    secondary = ("space", "candidates", "kept", "bound µs", "legal")
    return [Table(header, rows, secondary), Facts(_sums(preview))]


def _row(each: ProblemPreview, *, measures: bool) -> list[object]:
    spaces = [shortlist.funnel for shortlist in each.shortlists.templates]
    first, *others = each.operators
    name = visible(first, _NAME) + (f" and {len(others)} more" if others else "")
    best = min(shortlist.least for shortlist in each.shortlists.templates)
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


def _sums(preview: Preview) -> list[tuple[str, str]]:
    operators = sum(len(each.operators) for each in preview.problems)
    bound = sum(len(e.operators) * e.shortlists.bound.seconds for e in preview.problems)
    return [
        ("target", f"{preview.target.name} ({preview.target.arch})"),
        ("operators", f"{operators}, {_problem_words(preview)}"),
        ("bound", f"{bound * 1e6:.2f} µs for the network: nothing can beat it"),
        *_search(preview),
        ("dry run", "nothing was compiled, measured or written"),
    ]


def _problem_words(preview: Preview) -> str:
    """How many problems there are, and how many kernels, which problems that differ in numbers only share."""
    count, kernels = len(preview.problems), len(_by_kernel(preview))
    shared = f", {kernels} kernels: the others differ in numbers only" if kernels < count else ""
    return f"{count} distinct problems{shared}"


def _by_kernel(preview: Preview) -> dict[Problem, ProblemPreview]:
    """A problem of those that differ in numbers only, by what they share."""
    return {lifted(each.shortlists.problem).problem: each for each in preview.problems}


def _search(preview: Preview) -> list[tuple[str, str]]:
    if preview.tuning is None:
        different = _by_kernel(preview).values()
        ranked = [sum(len(s.kept) for s in e.shortlists.templates) for e in different]
        compiled = sum(min(FINALISTS, count) for count in ranked)
        return [("search", f"by models: about {compiled} kernels to compile, none to measure")]
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
    measured = f"up to {fresh} schedules to measure, {rounds}; {known} are known"
    return [
        ("search", f"{tuning.searcher}: {measured}"),
        ("time", f"{time}; limit: {limit}"),
        *(
            (
                "library",
                f"beside that {name}, where it is installed, for {count} problems: {best} for each",
            )
            for name, count in asked.items()
        ),
    ]
