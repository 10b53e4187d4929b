"""Loop and Scan, as ONNX defines them."""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun
from onnx.reference.ops.op_loop import Loop as OnnxLoop


class Loop(OnnxLoop):
    """A body, executed as long as its condition holds and at most so many times.

    onnx 1.23's joins what the rounds give along an axis that they have, instead of a new one, and
    makes no round where no condition is given. Scanned outputs of no rounds have a shape that only
    inference knows: none is guessed.
    """

    def _run(
        self,
        M: Any,  # noqa: N803
        cond: Any,
        *carried: Any,
        context: Any = None,
        body: Any = None,
        attributes: Any = None,
        bindings: Any = None,
    ) -> tuple[Any, ...]:
        inner: Any = getattr(self, "body")  # noqa: B009  # made of the attribute
        run_body: Any = getattr(self, "_run_body")  # noqa: B009  # likewise
        given = dict(context or {})
        values = [*carried, *[None] * (self.N - len(carried))]
        scanned: list[list[Any]] = [[] for _ in range(self.K)]
        going, done = cond is None or bool(np.all(cond)), 0
        while going and (M is None or done < int(np.ravel(M)[0])):
            number = np.array(done, np.int64 if M is None else M.dtype)
            feed = [number, np.array(going), *values]
            given.update(zip(inner.input_names, feed, strict=True))
            found = run_body(given, attributes=attributes, bindings=bindings)
            going, values = bool(np.all(found[0])), list(found[1 : 1 + self.N])
            for each, rounds in zip(found[1 + self.N :], scanned, strict=True):
                rounds.append(each)
            done += 1
        if self.K and not done:
            raise NotImplementedError("Loop of no rounds with scanned outputs")
        return (*values, *(np.stack(rounds) for rounds in scanned))


class Scan(OpRun):
    """A body, executed for each part of its inputs along their axes.

    onnx 1.23's knows no axis but the first, and goes forward only. Scanned outputs of no parts have a shape
    that only inference knows: none is guessed.
    """

    def need_context(self) -> bool:
        """Ask for the values outside, which the body may read."""
        return True

    def _run(
        self,
        *given: Any,
        context: Any = None,
        attributes: Any = None,
        bindings: Any = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        inner: Any = getattr(self, "body")  # noqa: B009  # made of the attribute
        run_body: Any = getattr(self, "_run_body")  # noqa: B009  # likewise
        first = len(given) - int(options["num_scan_inputs"])
        states = list(given[:first])
        ways_in = _ways(options, "input", len(given) - first)
        ways_out = _ways(options, "output", len(inner.output_names) - first)
        turned = [
            np.moveaxis(np.flip(x, axis) if backwards else x, axis, 0)
            for x, (axis, backwards) in zip(given[first:], ways_in, strict=True)
        ]
        scanned: list[list[Any]] = [[] for _ in ways_out]
        for parts in zip(*turned, strict=True):
            feed = dict(context or {})
            feed.update(zip(inner.input_names, [*states, *parts], strict=True))
            found = list(run_body(feed, attributes=attributes, bindings=bindings))
            states = found[:first]
            for each, part in zip(scanned, found[first:], strict=True):
                each.append(part)
        if not all(scanned):
            raise NotImplementedError("Scan of no parts with scanned outputs")
        joined = [
            np.stack(parts[::-1] if backwards else parts, axis)
            for parts, (axis, backwards) in zip(scanned, ways_out, strict=True)
        ]
        return (*states, *joined)


def _ways(options: Any, role: str, count: int) -> list[tuple[int, bool]]:
    """Along which axis each input or output goes, and whether backwards."""
    axes = options.get(f"scan_{role}_axes") or [0] * count
    directions = options.get(f"scan_{role}_directions") or [0] * count
    return [(int(a), bool(d)) for a, d in zip(axes, directions, strict=True)]
