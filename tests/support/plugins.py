"""The C++ of ``plugins/``, built for tests with sanitizers."""

import fcntl
import json
import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SANITIZED = ("-DCMAKE_BUILD_TYPE=Debug", "-DWPK_SANITIZE=address,undefined")


def built(folder: Path, *options: str) -> Path:
    """The folder of a build, made by the first process that asks; the others wait for it."""
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            configure = ["cmake", "-S", ROOT, "-B", folder, "-DWPK_EMULATOR=OFF", *options]
            for command in (configure, ["cmake", "--build", folder, "--parallel", "2"]):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stdout + done.stderr
                assert "warning:" not in done.stderr + done.stdout, done.stdout
            (folder / "done").touch()
    return folder


def answers(program: Path, specs: Sequence[bytes], dims: Sequence[int] = ()) -> list[Any]:
    """What ``plugins/tests/print_specs.cpp`` says of specs; it must survive all of them."""
    stream = b"".join(struct.pack("<I", len(spec)) + spec for spec in specs)
    done = subprocess.run(
        [program, *map(str, dims)], input=stream, capture_output=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = done.stdout.decode().splitlines()
    assert len(lines) == len(specs)
    return [json.loads(line) for line in lines]
