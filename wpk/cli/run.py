"""Execute a plan once.

Example:
    wpk run resnet18.plan --random 0 --outputs y.npz
"""

import argparse
import time
from pathlib import Path

from wpk.cli.say import say
from wpk.cli.usage import add_trust
from wpk.report import ProgressLine


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("plan", type=Path, metavar="PLAN")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--inputs", type=Path, metavar="X.npz", help="arrays by input name")
    source.add_argument(
        "--random", type=int, default=0, metavar="SEED", help="random inputs (default, seed 0)"
    )
    parser.add_argument("--outputs", type=Path, metavar="Y.npz", help="write the outputs")
    parser.add_argument("--device", choices=("auto", "gpu", "cpu"), default="auto")
    add_trust(parser)


def run(arguments: argparse.Namespace) -> int:
    """Execute, and print one line for each output."""
    import numpy as np

    from wpk.engine import load, random_inputs, read_arrays, write_arrays
    from wpk.report import Table

    how = {"trust": arguments.trust, "progress": ProgressLine(quiet=arguments.quiet)}
    with load(arguments.plan, arguments.device, **how) as engine:
        if arguments.inputs is not None:
            inputs = read_arrays(arguments.inputs)
        else:
            inputs = random_inputs(engine.plan, arguments.random)
        begun = time.perf_counter()
        outputs = engine.run(inputs)
        seconds = time.perf_counter() - begun
        steps, device, memory = len(engine.plan.steps), engine.device.name, engine.memory
    if arguments.outputs is not None:
        write_arrays(arguments.outputs, outputs)
    rows = []
    for name, array in outputs.items():
        wide = array.astype(np.float64)
        numbers = [f"{number:.6g}" for number in (wide.min(), wide.mean(), wide.max())]
        rows.append([name, str(array.dtype), "x".join(map(str, array.shape)), *numbers])
    say(
        Table(["output", "type", "shape", "min", "mean", "max"], rows),
        f"{steps} operators executed on {device} in {seconds:.2f} s; {memory}",
    )
    return 0
