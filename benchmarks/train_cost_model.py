"""Train the learned cost model on recorded spaces, and say how well it ranks networks that it was not taught.

    python -m pip install scikit-learn skl2onnx      # of nothing else here: to use the model takes neither
    python benchmarks/train_cost_model.py --recordings FOLDER --evaluate
    python benchmarks/train_cost_model.py --recordings FOLDER --output search/models/learned_costs.onnx

A schedule counts the more the faster it is among those of its problem: which of the slow ones is slower decides
nothing. ``--evaluate`` leaves each network out in turn.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from spaces.recorded import RecordedSpace, read_spaces

from wpk.performance import Floats
from wpk.search.models.learned import inputs_of

SETTINGS = {
    "max_iter": 200,
    "learning_rate": 0.08,
    "max_leaf_nodes": 24,
    "min_samples_leaf": 12,
    "l2_regularization": 1.0,
    "random_state": 0,
}

SHARPNESS = 2.0
"""A schedule twice as slow as its problem's fastest counts a quarter as much."""

OPSET = {"": 17, "ai.onnx.ml": 3}


def examples(spaces: Sequence[RecordedSpace]) -> tuple[Floats, Floats, Floats]:
    """Return inputs, corrections and weights of all schedules that ran."""
    best: dict[str, float] = {}
    for space in spaces:
        best[space.name] = min(best.get(space.name, np.inf), float(space.costs.min()))
    parts = []
    for space in spaces:
        rows = np.arange(len(space.table))
        inputs = inputs_of(space.problem, space.template, space.target, space.columns(rows))
        ran = np.isfinite(space.costs) & np.isfinite(inputs).all(axis=1)
        corrections = np.log(space.costs[ran]) - inputs[ran, 0] * np.log(2.0)
        parts.append((inputs[ran], corrections, (best[space.name] / space.costs[ran]) ** SHARPNESS))
    inputs, corrections, weights = (np.concatenate(each) for each in zip(*parts, strict=True))
    return inputs.astype(np.float32), corrections, weights


def trained(spaces: Sequence[RecordedSpace]) -> Any:
    """Return scikit-learn's model of some spaces."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    inputs, corrections, weights = examples(spaces)
    return HistGradientBoostingRegressor(**SETTINGS).fit(inputs, corrections, weights)


def as_onnx(model: Any, about: dict[str, str]) -> bytes:
    """Return a model as `wpk.search.models.learned` reads it, with what it was taught on."""
    from skl2onnx import to_onnx
    from skl2onnx.common.data_types import FloatTensorType

    count = int(model.n_features_in_)
    made = to_onnx(
        model, initial_types=[("inputs", FloatTensorType([None, count]))], target_opset=OPSET
    )
    del made.metadata_props[:]
    for name, text in about.items():
        entry = made.metadata_props.add()
        entry.key, entry.value = name, text
    return bytes(made.SerializeToString())


def evaluate(spaces: Sequence[RecordedSpace]) -> dict[str, dict[str, float]]:
    """Return, for each network left out of training, how good the first by each model are.

    Geometric means over its problems: the best of the first 1, 8 and 32 schedules of a problem over the best
    of all that were recorded, by the estimate and as learned.
    """
    found = {}
    for network in sorted({space.network for space in spaces}):
        model = trained([space for space in spaces if space.network != network])
        names = sorted({space.name for space in spaces if space.network == network})
        logs: dict[str, list[float]] = {}
        for name in names:
            its = [space for space in spaces if space.name == name]
            costs = np.concatenate([space.costs for space in its])
            inputs = [
                inputs_of(s.problem, s.template, s.target, s.columns(np.arange(len(s.table))))
                for s in its
            ]
            every = np.concatenate(inputs)
            learned = every[:, 0] * np.log(2.0) + model.predict(every.astype(np.float32))
            orders = {"estimate": np.concatenate([s.estimates for s in its]), "learned": learned}
            for kind, values in orders.items():
                order = np.argsort(values, kind="stable")
                for first in (1, 8, 32):
                    ratio = np.log(costs[order[:first]].min() / costs.min())
                    logs.setdefault(f"{kind}, first {first}", []).append(float(ratio))
        found[network] = {k: round(float(np.exp(np.mean(v))), 4) for k, v in logs.items()}
    return found


def main() -> None:
    """Evaluate, or train on all and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of record_spaces.py")
    parser.add_argument("--evaluate", action="store_true", help="leave each network out in turn")
    parser.add_argument("--output", type=Path, help="where the model goes")
    options = parser.parse_args()
    spaces = read_spaces(options.recordings)
    if options.evaluate:
        print(json.dumps(evaluate(spaces), indent=1))
    if options.output:
        import sklearn

        machine = json.loads((options.recordings / "machine.json").read_text(encoding="utf-8"))
        about = {
            "gpu": str(machine["gpu"]),
            "date": str(machine["date"]),
            "schedules": str(sum(len(space.table) for space in spaces)),
            "networks": ", ".join(sorted({space.network for space in spaces})),
            "trained by": f"benchmarks/train_cost_model.py, scikit-learn {sklearn.__version__}",
        }
        options.output.write_bytes(as_onnx(trained(spaces), about))
        print(f"{options.output}: {options.output.stat().st_size} bytes, {about}")


if __name__ == "__main__":
    main()
