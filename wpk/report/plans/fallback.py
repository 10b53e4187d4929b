"""What the host executes or drives, in sentences: which nodes, why, and at what cost."""

from wpk.candidate import Kind
from wpk.report.plans.facts import OperatorFacts, ReportFacts
from wpk.report.plans.words import listed


def fallback_operators(facts: ReportFacts) -> list[OperatorFacts]:
    """Return the operators that ONNX Runtime executes."""
    return [each for each in facts.operators if each.candidate.maker.kind is Kind.RUNTIME]


def fallback_sentences(facts: ReportFacts) -> list[str]:
    """Say which nodes the host executes or drives; nothing where there are none."""
    return [*_handed(facts), *_driven(facts)]


def _handed(facts: ReportFacts) -> list[str]:
    """Which nodes have no kernel."""
    operators = fallback_operators(facts)
    if not operators:
        return []
    count = sum(len(each.nodes) for each in operators)
    title = operators[0].title
    sentences = [
        (
            f"{count} nodes have no kernel: {title} executes them in the machine's memory, and a run "
            f"on a GPU waits for each of their {len(operators)} steps."
        )
    ]
    for each in operators:
        sentences.append(f"{each.name} holds {listed(each.nodes)}; {_cost(each)}.")
        sentences += [f"{each.name}: {reason}." for reason in each.note.split("; ")]
    return sentences


def _driven(facts: ReportFacts) -> list[str]:
    """Which nodes have bodies that are engines, and what these are."""
    operators = [each for each in facts.operators if each.candidate.maker.kind is Kind.CONTROL]
    sentences = [
        (
            f"{each.name} holds {listed(each.nodes)}: the host looks at the condition and runs the engines "
            f"of its bodies as often as needed, and a run on a GPU waits for it; "
            f"{_cost(each, 'for the turns that random inputs ask for')}."
        )
        for each in operators
    ]
    return sentences + [f"{body.sentence}." for body in facts.bodies]


def _cost(operator: OperatorFacts, what: str = "copies included") -> str:
    if operator.measurement is None:
        return "what it costs was not measured"
    return f"it takes {operator.time_us:.1f} µs, {what}"
