"""The C++ of ``plugins/``, built for tests with sanitizers."""

import fcntl
import json
import os
import shutil
import struct
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SANITIZERS = "address,undefined"
DEBUG = ("-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-g1")
"""Lines in what a sanitizer reports; variables and types, which nobody reads, take a fifth of the time of a build."""

SANITIZED = (*DEBUG, f"-DWPK_SANITIZE={SANITIZERS}")

TOGETHER = (
    *("-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_UNITY_BUILD_BATCH_SIZE=0"),
    "-DCMAKE_CXX_FLAGS=-Wno-subobject-linkage",  # a source's own types are in a header's then, for the compiler
)
"""Sources of a target as one: most of what a compiler reads are headers, and it reads them once."""


def built(folder: Path, *options: str, targets: Sequence[str] = ("all",)) -> Path:
    """The folder of a build of the sources as they are now, made by the first process that asks; the others wait for it.

    Args:
        folder: Of the build; always with the same targets.
        options: CMake's.
        targets: What is built there.
    """
    if shutil.which("cmake") is None:
        pytest.skip("needs cmake")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done_file, built_from = folder / "done", _digest_of_sources(options)
        if not done_file.exists() or done_file.read_text() != built_from:
            configure = ["cmake", "-S", ROOT, "-B", folder, "-DWPK_EMULATOR=OFF", *options]
            build = ["cmake", "--build", folder, "--parallel", "2", "--target", *targets]
            for command in (configure, build):
                done = subprocess.run(command, capture_output=True, text=True, check=False)
                assert done.returncode == 0, done.stdout + done.stderr
                assert "warning:" not in done.stderr + done.stdout, done.stdout
            done_file.write_text(built_from)
    return folder


def _digest_of_sources(options: Sequence[str]) -> str:
    """Of all that CMake builds from: a folder that is kept between runs is no longer right where it changed."""
    digest = sha256("\0".join(options).encode())
    for path in (ROOT / "CMakeLists.txt", *sorted((ROOT / "plugins").rglob("*"))):
        if path.is_file():
            digest.update(str(path).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


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


@dataclass(frozen=True)
class Ran:
    """What became of ``wpk-run``.

    Attributes:
        code: Its exit status.
        output: What it printed.
        error: What it complained of.
        calls: Lines that ``plugins/tests/recording_cuda`` recorded.
    """

    code: int
    output: str
    error: str
    calls: list[str]


def run_plan(build: Path, plan: Path, *words: str, failing_call: int = 0) -> Ran:
    """Execute a plan with ``wpk-run`` on the double of CUDA's driver.

    Args:
        build: A folder that `built` gave.
        plan: The plan.
        words: Other arguments.
        failing_call: The number, from 1, of the driver's call that fails.
    """
    record = plan.parent / "calls.txt"
    record.unlink(missing_ok=True)
    done = subprocess.run(
        [build / "plugins" / "run" / "wpk-run", plan, *words],
        env=on_the_double(build, record, failing_call),
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=120,
    )
    calls = record.read_text().splitlines() if record.exists() else []
    return Ran(done.returncode, done.stdout, done.stderr, calls)


def on_the_double(build: Path, record: Path, failing_call: int = 0) -> dict[str, str]:
    """The environment of a program that takes the double for the driver."""
    return {
        **os.environ,
        "WPK_CUDA_DRIVER": str(build / "plugins" / "tests" / "librecording_cuda.so"),
        "WPK_RECORD": str(record),
        "WPK_FAIL_CALL": str(failing_call),
    }
