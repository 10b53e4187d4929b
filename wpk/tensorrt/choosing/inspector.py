"""What TensorRT's engine inspector says of an engine, in the forms of TensorRT 10 and 11.

10 lists the engine's inputs and outputs as names under ``Bindings``, and gives a tensor's layout and
type together as ``Format/Datatype``. 11 has objects under ``I/O Tensors``, and two fields. An
engine that was built without detailed verbosity has layers that are names only, in both.
"""

import re
from dataclasses import dataclass
from typing import Any

from wpk.tensorrt.choosing.reading import entries, malformed, parsed, text_of

_SEPARATORS = re.compile("[\x1e\x1f]")
"""What TensorRT joins names and metadata with, beside `` + ``."""

_OTHER_PROFILE = re.compile(r"\[profile +[1-9]\d*\]")
"""Marks what belongs to another optimization profile than the first."""


@dataclass(frozen=True)
class LayerTensor:
    """A tensor that a layer reads or makes.

    Attributes:
        name: In the engine.
        format: Its layout, in TensorRT's words, with the type in TensorRT 10; empty where not said.
        type: Its element type where TensorRT says it apart, as 11 does; else empty.
        shape: Sizes; -1 where free.
    """

    name: str
    format: str
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class EngineLayer:
    """A layer of an engine, after TensorRT fused.

    Attributes:
        name: As the profiler reports it.
        kind: ``LayerType``; empty where only names are known.
        inputs: Empty where only names are known.
        outputs: Likewise.
        metadata: What the parser wrote of its nodes; empty where it did not.
        tactic: Name of the implementation, else its value; empty where not said.
    """

    name: str
    kind: str = ""
    inputs: tuple[LayerTensor, ...] = ()
    outputs: tuple[LayerTensor, ...] = ()
    metadata: str = ""
    tactic: str = ""


@dataclass(frozen=True)
class EngineInformation:
    """An engine as its inspector describes it.

    Attributes:
        layers: In the order of execution; those of the first optimization profile.
        bindings: Names of its inputs and outputs.
    """

    layers: tuple[EngineLayer, ...]
    bindings: tuple[str, ...]


def parse_engine(text: str) -> EngineInformation:
    """Read ``getEngineInformation(kJSON)`` or a file of ``trtexec --exportLayerInfo``.

    Raises:
        TensorRTError: The text is something else; says where.
    """
    document = parsed(text, "the engine's information")
    if not isinstance(document, dict) or "Layers" not in document:
        raise malformed("the engine's information", "no 'Layers'")
    layers = [_layer(each, i) for i, each in enumerate(entries(document["Layers"], "'Layers'"))]
    return EngineInformation(
        tuple(layer for layer in layers if not _OTHER_PROFILE.search(layer.name)),
        tuple(name for name in _bindings(document) if not _OTHER_PROFILE.search(name)),
    )


def clean(name: str) -> str:
    """A name with TensorRT's unprintable separators written as `` + ``."""
    return _SEPARATORS.sub(" + ", name)


def _layer(record: Any, index: int) -> EngineLayer:
    what = f"layer {index} of the engine's information"
    if isinstance(record, str):
        return EngineLayer(clean(record))
    if not isinstance(record, dict):
        raise malformed(what, f"a {type(record).__name__}")
    tactic = record.get("TacticName") or record.get("TacticValue") or ""
    return EngineLayer(
        name=clean(text_of(record, "Name", what)),
        kind=str(record.get("LayerType", "")),
        inputs=_tensors(record.get("Inputs", []), what),
        outputs=_tensors(record.get("Outputs", []), what),
        metadata=clean(str(record.get("Metadata", ""))),
        tactic=str(tactic),
    )


def _tensors(records: Any, what: str) -> tuple[LayerTensor, ...]:
    return tuple(_tensor(record, what) for record in entries(records, f"a tensor list of {what}"))


def _tensor(record: Any, what: str) -> LayerTensor:
    if not isinstance(record, dict):
        raise malformed(f"a tensor of {what}", f"a {type(record).__name__}")
    shape = entries(record.get("Dimensions", []), f"'Dimensions' of a tensor of {what}")
    if not all(isinstance(size, int) for size in shape):
        raise malformed(f"a tensor of {what}", f"'Dimensions' {shape!r}")
    return LayerTensor(
        name=clean(text_of(record, "Name", f"a tensor of {what}")),
        format=str(record.get("Format/Datatype") or record.get("Format") or ""),
        type=str(record.get("DataType") or record.get("Datatype") or ""),
        shape=tuple(shape),
    )


def _bindings(document: dict[str, Any]) -> list[str]:
    if "I/O Tensors" in document:
        records = entries(document["I/O Tensors"], "'I/O Tensors'")
        if not all(isinstance(record, dict) for record in records):
            raise malformed("'I/O Tensors'", "an entry that is no object")
        return [text_of(record, "Name", "an entry of 'I/O Tensors'") for record in records]
    names = entries(document.get("Bindings", []), "'Bindings'")
    if not all(isinstance(name, str) for name in names):
        raise malformed("'Bindings'", "an entry that is no name")
    return names
