"""ResNet-18's convolutions at batch 1: cuDNN's best engine beside the kernel that wpk chooses unmeasured.

    python benchmarks/cudnn_baseline.py --only '*.fp16' --output results.json

Every implementation is checked against float64 before it is timed. Times are medians over CUDA-graph
replays of at least 20 launches, operands in L2, implementations in turns. Convolutions have a bias, and
a ReLU where the network has one. cuDNN is asked for the fused operator, and for the bare convolution
without bias and ReLU, which bounds what splitting the operator could give; each with activations in
channels-last and in channels-first, no conversion counted. Rows that the output file holds are kept.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatch
from importlib.metadata import version
from pathlib import Path
from typing import Any

import wpk
from wpk.build.compiled import CompiledKernel
from wpk.build.nvrtc import load_nvrtc
from wpk.build.pool import CompilePool
from wpk.device.cuda import CudaDevice
from wpk.device.timing import Patience, Subject, Timing, repetitions_for, time_side_by_side
from wpk.dims import evaluate
from wpk.dtypes import DType, Precision
from wpk.execution import BoundArgument, BoundLaunch, KernelImage, Pointer, Replay
from wpk.expression import Acc, Operand, apply
from wpk.extent import Extent
from wpk.launch import Argument, InputArgument, Launch, OutputArgument, SizeArgument
from wpk.libraries.cudnn import Cudnn, CudnnCandidate
from wpk.libraries.execution import Operands, Workspace, capture
from wpk.libraries.reference import random_case, worst_error
from wpk.problems import Convolution, Epilogue, Tensor
from wpk.schedules import packings
from wpk.schedules.registry import TEMPLATES
from wpk.search.model_search import Found, search_model
from wpk.search.static_search import Choice
from wpk.targets.registry import find_target
from wpk.trial import Regime

LAYERS: dict[str, tuple[int, int, int, int, int]] = {
    f"conv{f}x{f}s{s}_{c}to{k}_{size}": (c, k, size, f, s)
    for c, k, size, f, s in (
        (3, 64, 224, 7, 2),
        (64, 64, 56, 3, 1),
        (64, 64, 56, 1, 1),
        (64, 128, 56, 3, 2),
        (64, 128, 56, 1, 2),
        (128, 128, 28, 3, 1),
        (128, 256, 28, 3, 2),
        (128, 256, 28, 1, 2),
        (256, 256, 14, 3, 1),
        (256, 512, 14, 3, 2),
        (256, 512, 14, 1, 2),
        (512, 512, 7, 3, 1),
    )
}
"""Channels in and out, size of the image, filter and stride."""

ROWS = {f"{layer}.{precision}": (layer, precision) for layer in LAYERS for precision in Precision}

LEAST_REPETITIONS, MOST_REPETITIONS = 20, 512
SAMPLE_SECONDS = 2e-4
ROUGH = Patience(least=3, most=5, noise=0.05, seconds=0.05)
"""To find the best of cuDNN's engines; the best is measured again."""


@dataclass(frozen=True)
class Contestant:
    """Something to time, found right: its description for the record, and a graph of it."""

    record: dict[str, Any]
    replay: Replay
    repetitions: int

    def subject(self) -> Subject:
        """Repetitions with operands in L2."""
        return Subject(self.replay, self.repetitions, self.replay.replay, Regime.WARM)


def convolution(
    row: str, *, channels_last: bool = True, image_first: bool = False, fused: bool = True
) -> Convolution:
    """The problem of a row; ``image_first`` keeps only the input in channels-first."""
    layer, precision = ROWS[row]
    c, k, size, f, s = LAYERS[layer]
    out = (size + 2 * (f // 2) - f) // s + 1
    dtype = precision.storage
    biased = apply("Add", Acc(), Operand(0))
    expression = apply("Relu", biased) if f > 1 else biased
    epilogue = Epilogue(expression, (Tensor(dtype, (0, 1, 0, 0)),)) if fused else Epilogue()
    x = _image(dtype, c, size, channels_last=channels_last and not image_first)
    y = _image(dtype, k, out, channels_last=channels_last)
    pad = (f // 2, f // 2)
    extents = (Extent(1), c, size, size, k, out, out, (f, f), (s, s), (1, 1), pad)
    return Convolution(precision, *extents, 1, False, x, y, epilogue)


def _image(dtype: DType, c: int, size: int, *, channels_last: bool) -> Tensor:
    pixels = size * size
    if channels_last:
        alignment = next(a for a in (16, 8, 4, 2) if c * dtype.bytes % a == 0)
        return Tensor(dtype, (pixels * c, 1, size * c, c), alignment=alignment)
    alignment = next(a for a in (16, 8, 4, 2) if size * dtype.bytes % a == 0)
    return Tensor(dtype, (c * pixels, pixels, size, 1), alignment=alignment)


def our_problem(row: str) -> Convolution:
    """As an engine has it: the first convolution reads the model's input in channels-first."""
    return convolution(row, image_first=LAYERS[ROWS[row][0]][0] == 3)


def search(rows: Sequence[str]) -> Found:
    """The kernels that wpk chooses without measuring."""
    target = find_target("h200")
    with CompilePool(target.arch) as pool:
        return search_model(map(our_problem, rows), TEMPLATES, target, pool.compile, _quiet)


def measure(device: CudaDevice, library: Cudnn, row: str, found: Found) -> dict[str, Any]:
    """Check and time a row's implementations side by side."""
    problem = our_problem(row)
    with ExitStack() as held:
        operands = held.enter_context(Operands(device, problem, random_case(problem, 0)))
        entries = {"generated": _generated(device, operands, problem, found)}
        for name, fused in (("cudnn_fused", True), ("cudnn_bare", False)):
            best = _best_of_cudnn(device, library, row, held, fused=fused)
            if best is not None:
                entries[name] = best
        subjects = [each.subject() for each in entries.values()]
        timings = time_side_by_side(device, subjects, Patience())
    names = zip(entries.items(), timings, strict=True)
    record: dict[str, Any] = {name: each.record | _times(timing) for (name, each), timing in names}
    if "cudnn_fused" in record:
        ratio = record["cudnn_fused"]["median_us"] / record["generated"]["median_us"]
        record["speedup_over_cudnn_fused"] = ratio
    return record


def _generated(
    device: CudaDevice, operands: Operands, problem: Convolution, found: Found
) -> Contestant:
    choice = found.choices[problem]
    finalist = choice.finalist
    schedule = finalist.scored.schedule
    _load(device, choice, found.kernels)
    packing = finalist.template.packing(problem, schedule)
    constant = packings.pack(packing, operands.case.operands[1], problem)
    pointers = operands.with_constant(constant)
    launches = [_bound(launch, pointers) for launch in finalist.launches]
    operands.poison()
    for launch in launches:
        device.launch(launch)
    device.synchronize()
    error = worst_error(operands.result(), operands.case)
    if not error <= 1.0:
        raise SystemExit(f"{finalist.template.name} is wrong: error {error:.3g} of what is allowed")
    record = {"template": finalist.template.name, "schedule": dict(schedule.parameters())}
    once = device.capture(launches)
    count = _repetitions(device, once)
    replay = device.capture(launches * count)
    return Contestant({**record, "worst_error": error}, replay, count)


def _best_of_cudnn(
    device: CudaDevice, library: Cudnn, row: str, held: ExitStack, *, fused: bool
) -> Contestant | None:
    """The fastest right engine over both layouts; ``held`` keeps the memory that it works on."""
    best: tuple[float, Contestant] | None = None
    tried = wrong = 0
    for channels_last in (True, False):
        problem = convolution(row, channels_last=channels_last, fused=fused)
        ready = [c for c in library.offer(problem).candidates if c.prepare() is None]
        operands = held.enter_context(Operands(device, problem, random_case(problem, 0)))
        scratch = held.enter_context(Workspace(device, ready))
        for candidate in ready:
            tried += 1
            error = worst_error(operands.run(candidate), operands.case)
            if not error <= 1.0:
                wrong += 1
                continue
            found = _contestant(device, candidate, operands.pointers(candidate), scratch)
            seconds = time_side_by_side(device, [found.subject()], ROUGH)[0].median
            if best is None or seconds < best[0]:
                layout = "channels-last" if channels_last else "channels-first"
                found.record.update(layout=layout, worst_error=error)
                best = seconds, found
    if best is not None:
        best[1].record.update(engines_tried=tried, engines_wrong=wrong)
    return None if best is None else best[1]


def _contestant(
    device: CudaDevice, candidate: CudnnCandidate, pointers: Sequence[int], scratch: int
) -> Contestant:
    once = capture(device, candidate, pointers, scratch, 1)
    count = _repetitions(device, once)
    replay = capture(device, candidate, pointers, scratch, count)
    record = {
        "engine": candidate.name,
        "workspace_bytes": candidate.workspace_bytes,
    }
    return Contestant(record, replay, count)


def _repetitions(device: CudaDevice, once: Replay) -> int:
    once.replay()
    seconds = min(device.seconds(once) for _ in range(3))
    return repetitions_for(seconds, SAMPLE_SECONDS, LEAST_REPETITIONS, MOST_REPETITIONS)


def _load(device: CudaDevice, choice: Choice, kernels: dict[str, CompiledKernel]) -> None:
    for source in choice.finalist.sources:
        device.load(KernelImage(source.digest, source, kernels[source.digest].cubin))


def _bound(launch: Launch, pointers: Sequence[int]) -> BoundLaunch:
    x, y, z = (evaluate(size, {}) for size in launch.grid)
    return BoundLaunch(
        *(launch.kernel, launch.entry, (x, y, z), launch.block, launch.cluster),
        *(launch.shared_bytes, tuple(_argument(a, pointers) for a in launch.arguments)),
        launch.attributes,
    )


def _argument(argument: Argument, pointers: Sequence[int]) -> BoundArgument:
    match argument:
        case InputArgument(index):
            return Pointer(pointers[index])
        case OutputArgument():
            return Pointer(pointers[-1])
        case SizeArgument(expression):
            return evaluate(expression, {})
    raise SystemExit(f"no convolution takes {argument}")


def _times(timing: Timing) -> dict[str, Any]:
    low, high = timing.band
    return {
        "median_us": timing.median * 1e6,
        "band_us": [low * 1e6, high * 1e6],
        "samples": len(timing.seconds),
    }


def _quiet(stage: str, done: int, count: int) -> None:
    if done == count:
        print(f"{stage}: {count}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure the rows asked for that the output file does not hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", metavar="ROW", default="*", help="rows, with wildcards")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "cudnn-baseline.json"
    )
    parser.add_argument("--commit", default="unknown", help="of this repository, for the record")
    options = parser.parse_args()
    held = json.loads(options.output.read_text()) if options.output.is_file() else {"rows": {}}
    rows = [row for row in ROWS if fnmatch(row, options.only) and row not in held["rows"]]
    if not rows:
        raise SystemExit(f"no row to measure matches {options.only!r}; rows are {', '.join(ROWS)}")
    found = search(rows)
    with CudaDevice() as device, Cudnn(device) as library:
        held["machine"] = {
            "date": datetime.now(UTC).date().isoformat(),
            "gpu": device.name,
            "cuda_driver_api": device.driver,
            "cudnn": library.version,
            "cudnn_frontend": version("nvidia-cudnn-frontend"),
            "nvrtc": ".".join(map(str, load_nvrtc().version)),
            "wpk": wpk.__version__,
            "command": "python benchmarks/cudnn_baseline.py --only ROW --output FILE --commit HASH",
        }
        for row in rows:
            held["rows"][row] = {"commit": options.commit, **measure(device, library, row, found)}
            options.output.write_text(json.dumps(held, indent=1, sort_keys=True) + "\n")
            print(row, _line(held["rows"][row]), flush=True)


def _line(record: dict[str, Any]) -> str:
    times = [f"{n} {e['median_us']:.2f} us" for n, e in record.items() if isinstance(e, dict)]
    return ", ".join(times)


if __name__ == "__main__":
    main()
