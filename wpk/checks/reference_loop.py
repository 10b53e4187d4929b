"""Loop, as ONNX defines it."""

from typing import Any

import numpy as np
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
