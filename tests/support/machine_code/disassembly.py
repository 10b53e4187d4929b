"""The machine code of a kernel as text."""

import importlib.util
import subprocess
from pathlib import Path

import pytest


def listing(cubin: bytes, folder: Path) -> str:
    """What ``nvdisasm -c`` prints; without the tool the test is skipped."""
    spec = importlib.util.find_spec("nvidia")
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    tools = [tool for place in places for tool in Path(place).glob("cu13/bin/nvdisasm")]
    if not tools:
        pytest.skip("needs the wheel nvidia-cuda-nvdisasm")
    file = folder / "kernel.cubin"
    file.write_bytes(cubin)
    return subprocess.run([tools[0], "-c", file], check=True, capture_output=True, text=True).stdout
