"""LinearAttention, as ONNX defines it, in the type of its inputs: onnx 1.23's computes in fp32."""

from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun


class LinearAttention(OpRun):
    """A state of keys by values for each head, to which each token adds and which it then reads.

    ``S = exp(decay) S + k (beta (v - S^T k))^T`` and ``y = scale q S``, where a rule without gates has no
    decay, and one without the delta adds ``k v^T``. Several heads of queries may share a state.
    Attributes as ONNX's LinearAttention.
    """

    def _run(
        self,
        query: Any,
        key: Any,
        value: Any,
        past: Any = None,
        decay: Any = None,
        beta: Any = None,
        **attributes: Any,
    ) -> tuple[Any, Any]:
        own, heads = int(attributes["q_num_heads"]), int(attributes["kv_num_heads"])
        q, k, v = _by_token(query, own), _by_token(key, heads), _by_token(value, heads)
        gates = None if decay is None else np.exp(_by_token(decay, heads))
        rates = None if beta is None else _by_token(beta, beta.shape[-1])
        scale = attributes.get("scale") or 1 / np.sqrt(q.shape[-1])
        shape = (*k.shape[1:], v.shape[-1])
        state = np.zeros(shape, query.dtype) if past is None else past
        outputs = []
        for step in range(len(q)):
            if gates is not None:
                state = state * gates[step][..., None]
            new = v[step]
            if rates is not None:
                new = rates[step] * (new - np.einsum("bhd,bhdm->bhm", k[step], state))
            state = state + k[step][..., None] * new[..., None, :]
            read = np.repeat(state, own // heads, axis=1)
            outputs.append(scale * np.einsum("bhd,bhdm->bhm", q[step], read))
        y = np.stack(outputs, axis=1).reshape(*query.shape[:2], -1)
        return y.astype(query.dtype), state.astype(query.dtype if past is None else past.dtype)


def _by_token(x: Any, heads: int) -> Any:
    """Part the last axis among heads: ``[batch, token, head x n]`` becomes ``[token, batch, head, n]``."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(0, 1)
