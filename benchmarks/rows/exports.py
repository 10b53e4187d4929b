"""Networks exported from the modules that serve as baselines."""

from __future__ import annotations

from functools import partial

from export import NETWORKS

from rows.base import Context, Outcome, Row


def rows() -> list[Row]:
    """One a network."""
    claim = "the exported file computes what the module computes, at several batches"
    return [Row(f"export.{name}", claim, partial(_measure, name)) for name in NETWORKS]


def _measure(network: str, context: Context) -> Outcome:
    path = context.store / "networks" / f"{network}.onnx"
    figures = context.export(network, path)
    summary = f"{figures['error']:.1e} from the module, {figures['bytes'] / 1e6:.1f} MB"
    return Outcome(figures["error"] <= figures["allowed"], summary, figures)
