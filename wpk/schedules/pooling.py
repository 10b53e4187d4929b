"""Pooling: max and average over windows, one pixel and a few channels to a thread."""

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from wpk.expression import cpp_type, flops
from wpk.performance import Columns, Work, pooling_flops
from wpk.problems import Pooling, PoolKind
from wpk.schedules.image import ORDER, Image
from wpk.schedules.limit import Limit
from wpk.schedules.single_kernel import KernelPlan, SingleKernelTemplate, linear_grid
from wpk.schedules.streaming import Stream, VectorSchedule, ceil_divide, narrow_access
from wpk.schedules.strided import cpp_tensor, cpp_tensors, is_wide, moved_bytes, why_operand_missing
from wpk.schedules.unit import Type
from wpk.targets import Target


class PoolingTemplate(SingleKernelTemplate[Pooling, VectorSchedule]):
    """Every window is read by its own thread; neighbours meet in the L1 cache."""

    name: ClassVar[str] = "pooling"
    version: ClassVar[int] = 5
    problem_type = Pooling
    schedule_type = VectorSchedule

    def why_not(self, problem: Pooling, target: Target) -> str | None:
        """Refuses tensors beyond 32-bit addressing and padding along rows."""
        operands = problem.epilogue.operands
        missing = why_operand_missing(problem.epilogue.expression, len(operands), "epilogue")
        shape = (1, problem.c, problem.p, problem.q)
        inputs = [(problem.x, (1, problem.c, problem.h, problem.w))]
        return missing or _image(problem).why_not([*inputs, *((t, shape) for t in operands)])

    def _axes(self, problem: Pooling, target: Target) -> dict[str, tuple[int, ...]]:
        """Channels a thread, threads a block."""
        return {
            "vector": _image(problem).vectors(problem.x),
            "threads": (256, 128, 64, 512),
        }

    def _limits(self, problem: Pooling) -> Sequence[Limit]:
        return _image(problem).limits()

    def work(self, problem: Pooling, columns: Columns, target: Target) -> Work:
        """Tables 6 and 8: windows counted in full, a block's input tile once."""
        image = _image(problem)
        items = problem.p * (problem.q + image.padding_q) * (problem.c + image.padding_c)
        total = problem.n.value * items
        vector, threads = columns["vector"].astype(float), columns["threads"].astype(float)
        outputs = vector * threads
        blocks = ceil_divide(total, outputs)
        shape = (problem.n.value, problem.c, problem.p, problem.q)
        tail = prod(shape) * flops(problem.epilogue.expression)
        fastest = 1 if image.channels_fastest else 3
        tile = image.block_inputs(outputs, problem.window, problem.stride, problem.dilation)
        size = problem.x.dtype.bytes
        operands = sum(moved_bytes(t, shape, fastest) for t in problem.epilogue.operands)
        return Stream(
            element_bytes=size,
            flops=pooling_flops(*shape, problem.window) + tail,
            loads=blocks * tile * size * narrow_access(vector, size) + operands,
            stores=total * problem.y.dtype.bytes,
            blocks=blocks,
            threads=threads,
            registers=24.0 + 3 * vector,
            early=columns["early"] == 1,
        ).work(target)

    def kernel(self, problem: Pooling, schedule: VectorSchedule) -> KernelPlan:
        """Items are runs of channels at one pixel."""
        image = _image(problem)
        items = image.items(schedule.vector)
        return KernelPlan(
            members={
                "X": Type(cpp_tensor(problem.x, ORDER)),
                "Y": Type(cpp_tensor(problem.y, ORDER)),
                "Operands": Type(cpp_tensors(problem.epilogue.operands, ORDER)),
                "Epilogue": Type(cpp_type(problem.epilogue.expression)),
                **_constants(problem),
                "wide": is_wide(problem.n, items),
            },
            inputs=1 + len(problem.epilogue.operands),
            leading=problem.n,
            grid=linear_grid(problem.n, items, schedule.threads),
            threads=schedule.threads,
        )


def _image(problem: Pooling) -> Image:
    return Image(problem.c, problem.p, problem.q, problem.y)


def _constants(problem: Pooling) -> dict[str, int]:
    return {
        "isMax": problem.kind is PoolKind.MAX,
        "countIncludePad": problem.count_include_pad,
        "h": problem.h,
        "w": problem.w,
        **dict(zip(("windowH", "windowW"), problem.window, strict=True)),
        **dict(zip(("strideH", "strideW"), problem.stride, strict=True)),
        **dict(zip(("dilationH", "dilationW"), problem.dilation, strict=True)),
        **dict(zip(("padTop", "padLeft"), problem.pad, strict=True)),
        **dict(zip(("padBottom", "padRight"), problem.pad_end, strict=True)),
        **_image(problem).constants(),
    }
