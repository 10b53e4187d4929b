"""What a file is, by its first bytes: for words about files that were given in another's place."""

import zipfile
from enum import Enum
from pathlib import Path


class FileKind(Enum):
    """What people mistake for each other, in words."""

    PLAN = "a plan of wpk"
    MODEL = "an ONNX model"
    TORCH = "a file of PyTorch"
    TENSORRT = "an engine of TensorRT"
    TENSORRT_RTX = "an engine of TensorRT for RTX"


_TENSORRT = {
    b"ftrt": FileKind.TENSORRT,
    b"ptrt": FileKind.TENSORRT,
    b"vtrt": FileKind.TENSORRT_RTX,
}
_PICKLE = b"\x80"
_IR_VERSION = 0x08
"""The first byte of an ONNX model, as every exporter writes it: the field of the IR's version."""


def kind_of_file(path: Path) -> FileKind | None:
    """What a file is; None where it is none of these, or cannot be read. Nothing in it is believed."""
    try:
        with path.open("rb") as stream:
            start = stream.read(4)
            if start in _TENSORRT:
                return _TENSORRT[start]
            if start[:2] == b"PK":
                return _kind_of_archive(path)
    except OSError:
        return None
    if start[:1] == _PICKLE and path.suffix in (".pt", ".pth", ".bin", ".ckpt"):
        return FileKind.TORCH
    if len(start) > 1 and start[0] == _IR_VERSION and 0 < start[1] < 0x80:
        return FileKind.MODEL
    return None


def _kind_of_archive(path: Path) -> FileKind | None:
    """PyTorch saves archives, too."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = {name.rpartition("/")[2] for name in archive.namelist()[:1000]}
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return None
    if "plan.json" in names:
        return FileKind.PLAN
    return FileKind.TORCH if names & {"data.pkl", "version", "byteorder"} else None
