"""What no kernel computes, in sentences: which nodes ONNX Runtime executes, why, and at what cost."""

from wpk.candidate import Kind
from wpk.report.plans.facts import OperatorFacts, ReportFacts
from wpk.report.plans.words import listed


def fallback_operators(facts: ReportFacts) -> list[OperatorFacts]:
    """Return the operators that ONNX Runtime executes."""
    return [each for each in facts.operators if each.candidate.maker.kind is Kind.RUNTIME]


def fallback_sentences(facts: ReportFacts) -> list[str]:
    """Say which nodes have no kernel; nothing where all have one."""
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


def _cost(operator: OperatorFacts) -> str:
    if operator.measurement is None:
        return "what it costs was not measured"
    return f"it takes {operator.time_us:.1f} µs, copies included"
