"""Which steps of networks' plans can be TensorRT's quick plugins, and why the others cannot.

    python benchmarks/quick_plugins.py [--precision fp16] [--steps] [NETWORK]...

Plans are chosen by models, without a GPU, for an H200. A line for each reason and network; with --steps one for each
step.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

# Python's safe path leaves a script's folder out.
sys.path.insert(0, str(Path(__file__).parent))

import onnx
from subjects import exported

import wpk
from wpk.plan import Plan
from wpk.report import format_table
from wpk.tensorrt.quick import why_not

NETWORKS = {
    "resnet18": "tv_resnet18.dynamo",
    "resnet50": "tv_resnet50.dynamo",
    "mobilenet_v2": "tv_mobilenet_v2.dynamo",
    "densenet121": "tv_densenet121.dynamo",
    "inception_v3": "tv_inception_v3.dynamo",
    "distilbert": "hf_distilbert.dynamo",
}

FITS = "can be one"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=[])
    parser.add_argument("--precision", default="fp16", choices=("fp32", "fp16"))
    parser.add_argument("--steps", action="store_true", help="a line for each step")
    options = parser.parse_args(arguments)
    rows: list[list[object]] = []
    for network in options.networks or NETWORKS:
        found = reasons(_plan(network, options.precision))
        if options.steps:
            rows += [[network, name, template, why] for name, template, why in found]
        else:
            counts = Counter(why for _, _, why in found)
            rows += [[network, why, count] for why, count in counts.most_common()]
    header = (
        ["network", "step", "template", "quick plugin"]
        if options.steps
        else ["network", "quick plugin", "steps"]
    )
    print(format_table(header, rows))
    return 0


def reasons(plan: Plan) -> list[tuple[str, str, str]]:
    """Of each step its operator, what computes it, and why it can be no quick plugin."""
    return [
        (
            step.operator.name,
            step.candidate.maker.name,
            why_not(step, tuple(plan.values[name].dtype for name in step.operator.outputs)) or FITS,
        )
        for step in plan.steps
    ]


def _plan(network: str, precision: str) -> Plan:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "network.onnx")
        onnx.save(exported.refill(NETWORKS[network]), path)
        made = wpk.optimize(
            path,
            path.with_suffix(".plan"),
            target="h200",
            precision=precision,
            search="static",
            check="off",
        )
        return made.plan


if __name__ == "__main__":
    sys.exit(main())
