"""Write the recordings of this folder.

    python tests/replay/model_recordings.py

They are modelled, not measured: the estimate of each legal schedule on an H200, times what the
estimate does not know (interactions of two parameters, and noise), and some failures. Timings recorded on a GPU take their place once there is a runner; the format and the
tests stay.
"""

from pathlib import Path
from typing import Any

import numpy as np

from wpk.dtypes import DType, Precision
from wpk.extent import Extent
from wpk.performance.bound import bound
from wpk.performance.estimate import estimate
from wpk.problems import Convolution, Epilogue, Matmul, Problem, Tensor
from wpk.schedules.conv_mma import ConvMmaTemplate
from wpk.schedules.conv_simt import ConvSimtTemplate
from wpk.schedules.gemm_simt import GemmSimtTemplate
from wpk.search.features import problem_features
from wpk.search.replay import Recording, write_recording
from wpk.search.space import SearchSpace
from wpk.targets.registry import find_target
from wpk.trial import Status, Trial

FAILING, INTERACTION, NOISE = 0.05, 0.08, 0.05
"""Share of schedules that fail; standard deviations of the logarithm."""

H200 = find_target("h200")


def _convolution(precision: Precision, size: int, channels: int) -> Convolution:
    dtype = precision.storage
    image = Tensor(dtype, (size * size * channels, 1, size * channels, channels))
    return Convolution(
        precision=precision,
        n=Extent(1),
        c=channels,
        h=size,
        w=size,
        k=channels,
        p=size,
        q=size,
        filter=(3, 3),
        stride=(1, 1),
        dilation=(1, 1),
        pad=(1, 1),
        groups=1,
        transposed=False,
        x=image,
        y=image,
        epilogue=Epilogue(),
    )


def _product(m: int, n: int, k: int) -> Matmul:
    return Matmul(
        precision=Precision.FP32,
        batch=(Extent(1), 1),
        m=Extent(m),
        n=n,
        k=k,
        a=Tensor(DType.FP32, (0, 0, k, 1)),
        b=Tensor(DType.FP32, (0, 0, n, 1)),
        b_constant=True,
        y=Tensor(DType.FP32, (0, 0, n, 1)),
        epilogue=Epilogue(),
    )


def record(problem: Problem, template: Any, name: str, seed: int) -> Recording:
    """Modelled trials of all legal schedules."""
    generator = np.random.default_rng(seed)
    _, columns = template.space(problem, H200)
    space = SearchSpace.of(problem, template, H200)
    logs = np.log(estimate(template.work(problem, columns, H200), bound(problem, H200), H200))
    for first in range(len(space.shape)):
        for second in range(first):
            shape = (space.shape[first], space.shape[second])
            table = generator.normal(0, INTERACTION, shape)
            logs += table[space.genomes[:, first], space.genomes[:, second]]
    logs += generator.normal(0, NOISE, space.size)
    failed = generator.random(space.size) < FAILING
    trials = []
    for row in range(space.size):
        status = Status.LAUNCH_FAILED if failed[row] else Status.OK
        times = () if failed[row] else (float(f"{np.exp(logs[row]):.4g}"),)
        trials.append(Trial(space.schedule(row).parameters(), status, times))
    features, device = problem_features(problem), "model of h200"
    return Recording(device, name, features, template.name, space.names, tuple(trials))


def main() -> None:
    """Write all of them beside this file."""
    recordings = [
        record(_convolution(Precision.FP16, 7, 512), ConvMmaTemplate(), "conv3x3_7_fp16", 1),
        record(_convolution(Precision.FP32, 28, 32), ConvSimtTemplate(), "conv3x3_28_fp32", 2),
        record(_product(1, 1000, 512), GemmSimtTemplate(), "gemv_fp32", 3),
    ]
    for each in recordings:
        path = Path(__file__).with_name(f"{each.problem}-{each.template}.jsonl")
        write_recording(each, path)


if __name__ == "__main__":
    main()
