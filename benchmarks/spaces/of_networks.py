"""Problems of the zoo's networks: what passes and lowering make of a file, on the CPU."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from wpk.dtypes import Precision
from wpk.lowering.model import lower_model
from wpk.problems import Problem
from wpk.targets import Target, features_of

CASE = re.compile(r"(?P<network>[\w.]+)\.(?P<precision>fp32|tf32|fp16|bf16)\.b(?P<batch>\d+)")
"""How a network is named, with its precision and its batch: ``vit.fp16.b32``, as the zoo's rows are."""

_EXPORTER = Path(__file__).parents[1] / "export_zoo.py"


def network_problems(case: str, models: Path, target: Target) -> dict[str, Problem]:
    """Return the distinct problems of a network that kernels compute, named by their place: ``vit.fp16.b32.3``.

    Args:
        case: See `CASE`.
        models: Folder of the files, ``vit.b32.onnx``; what is not there is exported, which needs PyTorch.
        target: The GPU that the passes are for.

    Raises:
        SystemExit: It is no such name, or the network cannot be exported.
    """
    found = CASE.fullmatch(case)
    if found is None:
        raise SystemExit(
            f"{case} names no network; fix: NETWORK.PRECISION.bBATCH, e.g. vit.fp16.b32"
        )
    path = models / f"{found['network']}.b{found['batch']}.onnx"
    if not path.is_file():
        asked = [found["network"], str(path), "--batch", found["batch"]]
        if subprocess.run([sys.executable, str(_EXPORTER), *asked], check=False).returncode:
            raise SystemExit(f"{path} is not there, and could not be exported")
    precision = Precision(found["precision"])
    lowered = lower_model(path, {}, precision, features=features_of(target.arch))
    problems = dict.fromkeys(lowered.program.problems)
    return {f"{case}.{place}": problem for place, problem in enumerate(problems)}
