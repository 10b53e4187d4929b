"""Train the learned cost model on recorded spaces, and say how well it ranks networks that it was not taught.

    python -m pip install scikit-learn      # to train; to use the model takes nothing but ONNX Runtime
    python benchmarks/train_cost_model.py --recordings FOLDER --evaluate
    python benchmarks/train_cost_model.py --recordings FOLDER --output search/models/learned_costs.onnx
    python benchmarks/train_cost_model.py --recordings FOLDER --apart build/models

A schedule counts the more the faster it is among those of its problem: which of the slow ones is slower decides
nothing. ``--evaluate`` leaves each network out in turn; ``--apart`` writes those models, for `searcher_study.py`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

from spaces.recorded import RecordedSpace, read_spaces

from wpk.performance import Floats
from wpk.search.models.learned import inputs_of

SETTINGS = {
    "n_estimators": 200,
    "learning_rate": 0.08,
    "max_depth": 6,
    "min_samples_leaf": 8,
    "subsample": 0.7,
    "max_features": 0.4,
    "random_state": 0,
}
"""Of scikit-learn's GradientBoostingRegressor."""

RESULTS = Path(__file__).parent / "results" / "h100-learned-costs.json"

SHARPNESS = 2.0
"""A schedule twice as slow as its problem's fastest counts a quarter as much."""


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
    from sklearn.ensemble import GradientBoostingRegressor

    return GradientBoostingRegressor(**SETTINGS).fit(*examples(spaces))


def as_onnx(model: Any, about: Mapping[str, str]) -> bytes:
    """Return a model as `wpk.search.models.learned` reads it, with what it was taught on.

    One TreeEnsembleRegressor. Inputs are fp32, and scikit-learn compares them with thresholds in fp64: rounded down to
    fp32 they divide fp32 numbers alike.
    """
    nodes: dict[str, list[Any]] = {name: [] for name in _NODES}
    leaves: dict[str, list[Any]] = {"treeids": [], "nodeids": [], "ids": [], "weights": []}
    for number, (regressor,) in enumerate(model.estimators_):
        tree = regressor.tree_
        for node in range(tree.node_count):
            is_leaf = tree.children_left[node] < 0
            threshold = 0.0 if is_leaf else _rounded_down(float(tree.threshold[node]))
            nodes["treeids"].append(number)
            nodes["nodeids"].append(node)
            nodes["featureids"].append(0 if is_leaf else int(tree.feature[node]))
            nodes["values"].append(threshold)
            nodes["modes"].append("LEAF" if is_leaf else "BRANCH_LEQ")
            nodes["truenodeids"].append(0 if is_leaf else int(tree.children_left[node]))
            nodes["falsenodeids"].append(0 if is_leaf else int(tree.children_right[node]))
            if is_leaf:
                weight = model.learning_rate * float(tree.value[node].item())
                for name, value in zip(leaves, (number, node, 0, weight), strict=True):
                    leaves[name].append(value)
    ensemble = helper.make_node(
        "TreeEnsembleRegressor",
        ["inputs"],
        ["corrections"],
        domain="ai.onnx.ml",
        n_targets=1,
        base_values=[float(model.init_.constant_.item())],
        **{f"nodes_{name}": values for name, values in nodes.items()},
        **{f"target_{name}": values for name, values in leaves.items()},
    )
    inputs = helper.make_tensor_value_info(
        "inputs", TensorProto.FLOAT, [None, model.n_features_in_]
    )
    outputs = helper.make_tensor_value_info("corrections", TensorProto.FLOAT, [None, 1])
    graph = helper.make_graph([ensemble], "learned costs", [inputs], [outputs])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    helper.set_model_props(made, dict(about))
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


_NODES = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")


def _rounded_down(value: float) -> float:
    rounded = np.float32(value)
    return float(rounded if rounded <= value else np.nextafter(rounded, np.float32(-np.inf)))


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


def judged(found: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return the networks, and the geometric mean over them."""
    names = next(iter(found.values()))
    means = {n: float(np.exp(np.mean([np.log(each[n]) for each in found.values()]))) for n in names}
    return {"mean": {name: round(value, 4) for name, value in means.items()}, "networks": found}


def main() -> None:
    """Evaluate, or train on all and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--recordings", type=Path, required=True, help="of record_spaces.py")
    parser.add_argument("--evaluate", action="store_true", help="leave each network out in turn")
    parser.add_argument("--output", type=Path, help="where the model goes")
    parser.add_argument(
        "--apart", type=Path, help="folder of models that one network taught nothing"
    )
    options = parser.parse_args()
    spaces = read_spaces(options.recordings)
    machine = json.loads((options.recordings / "machine.json").read_text(encoding="utf-8"))
    if options.evaluate:
        text = json.dumps({"machine": machine} | judged(evaluate(spaces)), indent=1)
        RESULTS.write_text(text + "\n", encoding="utf-8")
        print(text)
    if options.apart:
        options.apart.mkdir(parents=True, exist_ok=True)
        for network in sorted({space.network for space in spaces}):
            model = trained([space for space in spaces if space.network != network])
            about = {"without": network}
            (options.apart / f"without-{network}.onnx").write_bytes(as_onnx(model, about))
    if options.output:
        import sklearn

        about = {
            "gpu": str(machine["gpu"]),
            "date": str(machine["date"]),
            "schedules": str(sum(len(space.table) for space in spaces)),
            "templates": ", ".join(sorted({space.template.name for space in spaces})),
            "precisions": ", ".join(sorted({str(space.problem.precision) for space in spaces})),
            "networks": ", ".join(sorted({space.network for space in spaces})),
            "trained by": f"benchmarks/train_cost_model.py, scikit-learn {sklearn.__version__}",
        }
        options.output.write_bytes(as_onnx(trained(spaces), about))
        print(f"{options.output}: {options.output.stat().st_size} bytes, {about}")


if __name__ == "__main__":
    main()
