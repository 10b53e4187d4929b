"""Cases on the disk: a line of JSON that says how to run it, and the model as ONNX text."""

import json
from dataclasses import asdict
from pathlib import Path

import onnx

from fuzzing.builder import Range
from fuzzing.graphs import Case

FOLDER = Path(__file__).parent.parent / "corpus"


def write_case(case: Case, path: Path, note: str) -> None:
    """Write a case.

    Args:
        case: The case.
        path: The file.
        note: What it shows, for people.

    Raises:
        ValueError: Text cannot say this model.
    """
    head = {
        "note": note,
        "from": case.name,
        "precision": case.precision,
        "sizes": list(case.sizes),
        "ranges": {name: asdict(among) for name, among in case.ranges.items()},
    }
    text = onnx.printer.to_text(case.model)
    if onnx.printer.to_text(onnx.parser.parse_model(text)) != text:
        raise ValueError(f"the model of {case.name} cannot be written as text")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(head) + "\n" + text + "\n", encoding="utf-8")


def read_case(path: Path) -> Case:
    """Read a case that `write_case` wrote, or a person."""
    head, _, text = path.read_text(encoding="utf-8").partition("\n")
    said = json.loads(head)
    ranges = {name: Range(**among) for name, among in said["ranges"].items()}
    model = onnx.parser.parse_model(text)
    return Case(model, said["precision"], ranges, tuple(said["sizes"]), path.stem)


def files() -> list[Path]:
    """The corpus."""
    return sorted(FOLDER.glob("*.onnxtxt"))
