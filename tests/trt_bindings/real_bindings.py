"""NVIDIA's own Python bindings of TensorRT, imported without its libraries: names, enums, signatures; nothing is executed.

Their shared libraries are stood in for by empty ones, made here, whose functions return null.
"""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
VERSIONS = ("10.3.0", "10.13.3", "11.4.0")
QUICK_VERSIONS = VERSIONS[1:]
"""Those that have quick plugins."""

_LIBRARIES = ("nvinfer", "nvinfer_plugin", "nvonnxparser")
_FUNCTIONS = (
    "createInferBuilder_INTERNAL",
    "createInferRefitter_INTERNAL",
    "createInferRuntime_INTERNAL",
    "createNvOnnxParserRefitter_INTERNAL",
    "createNvOnnxParser_INTERNAL",
    "getBuilderPluginRegistry",
    "getNvOnnxParserVersion",
    "getPluginRegistry",
    "initLibNvInferPlugins",
)

_TELL = """
import json, sys
import tensorrt_bindings as trt
def told(owner):
    found = {}
    for name in dir(owner):
        if name.startswith("__"):
            continue
        value = getattr(owner, name)
        found[name] = {"doc": getattr(value, "__doc__", None) or "", "members": told(value) if isinstance(value, type) else {}}
    return found
json.dump({"version": trt.__version__, "names": told(trt)}, sys.stdout)
"""


def names_of(version: str) -> dict[str, Any]:
    """All that the module has: (name, then ``doc`` and ``members``)."""
    package = package_of(version)
    done = subprocess.run(
        [sys.executable, "-c", _TELL],
        env={**os.environ, "PYTHONPATH": str(package), "LD_LIBRARY_PATH": str(package / "stubs")},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout[done.stdout.index("{") :])
    assert told["version"].startswith(version)
    names: dict[str, Any] = told["names"]
    return names


def package_of(version: str) -> Path:
    """The unpacked wheel with its stubs, fetched once."""
    folder = ROOT / "build" / "bindings" / version
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            _fetch(version, folder)
            _stubs(version.split(".")[0], folder / "stubs")
            (folder / "done").touch()
    return folder


def _fetch(version: str, folder: Path) -> None:
    cuda = "cu12" if version == "10.3.0" else "cu13"
    wanted = f"tensorrt-{cuda}-bindings=={version}.*"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
    done = subprocess.run([*map(str, command), wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{wanted} cannot be fetched: {done.stderr.strip().splitlines()[-1]}")
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


def _stubs(major: str, folder: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder.mkdir(exist_ok=True)
    source = folder / "stub.c"
    source.write_text("".join(f"void* {name}(void) {{ return 0; }}\n" for name in _FUNCTIONS))
    for name in _LIBRARIES:
        library = f"lib{name}.so.{major}"
        command = [
            compiler,
            "-shared",
            "-fPIC",
            f"-Wl,-soname,{library}",
            "-o",
            folder / library,
            source,
        ]
        subprocess.run(list(map(str, command)), check=True)
