"""What came of asking for an engine of TensorRT."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class TensorRTOutcome:
    """What was written.

    Attributes:
        path: The file.
        description: What the engine's sidecar says; None where a plan of wpk's own was faster, and is the file.
        remark: What was compared with what, or why nothing was, in words.
    """

    path: Path
    description: dict[str, Any] | None
    remark: str
