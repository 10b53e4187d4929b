"""Build pycuda without a CUDA toolkit, and install it for the Python that executes this.

pycuda is published as source. Of a toolkit it needs two headers, which the wheels nvidia-cuda-runtime and
nvidia-cuda-profiler-api hold, and a libcuda.so to link with: an empty one of that name will do, since the
driver's own is loaded at run time. Its interface to cuRAND, which wpk does not use, is left out.

    python scripts/pycuda_from_wheels.py [--check] [--no-driver]

pip's own settings hold: PIP_FIND_LINKS and PIP_NO_INDEX take everything from a folder of carried files.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from pathlib import Path

REQUIREMENT = "pycuda>=2025.1"  # as in pyproject.toml
HEADERS = ("nvidia-cuda-runtime==13.0.*", "nvidia-cuda-profiler-api==13.0.*")
"""Of the CUDA that the oldest driver knows which wpk runs on. Python binds every function of an extension when it
loads it, and newer headers name some that this driver lacks."""

OLDEST_CUDA = 13000
INCLUDE = Path("nvidia", "cu13", "include")
DRIVER = "libcuda.so.1"


class SetupError(Exception):
    """Why it cannot be done, and what to do about it."""

    def __init__(self, what: str, fix: str) -> None:
        """Say both in one line each."""
        super().__init__(f"wpk: error: {what}\n  fix: {fix}")


def main() -> int:
    """Check the machine, and unless that was all, install pycuda if it is not there yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="only say what this machine lacks")
    parser.add_argument(
        "--no-driver",
        action="store_true",
        help="do without a driver: for images and other machines",
    )
    arguments = parser.parse_args()
    try:
        if not arguments.no_driver:
            require_driver()
        if installed() is None:
            compiler = require_compiler()
            require_python_headers()
            if not arguments.check:
                install(compiler)
        if not arguments.check:
            say(f"pycuda {installed()} is installed")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def say(what: str) -> None:
    """Report progress."""
    print(f"wpk: {what}", file=sys.stderr, flush=True)


def installed() -> str | None:
    """The version of pycuda that this Python has."""
    importlib.invalidate_caches()
    try:
        return importlib.metadata.version("pycuda")
    except importlib.metadata.PackageNotFoundError:
        return None


def require_driver() -> None:
    """Refuse a machine without a driver, or with one that is too old."""
    try:
        driver = ctypes.CDLL(DRIVER)
    except OSError as error:
        raise SetupError(
            f"no NVIDIA driver was found: {error}",
            "install driver 580 or newer; to prepare an image or another machine: "
            "scripts/environment gpu --no-driver",
        ) from error
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    if version.value < OLDEST_CUDA:
        raise SetupError(
            f"the NVIDIA driver is for CUDA {version.value // 1000}.{version.value % 1000 // 10}, "
            "and wpk needs one for CUDA 13",
            "install driver 580 or newer",
        )


def require_compiler() -> str:
    """The C++ compiler that Python extensions are built with."""
    compiler = os.environ.get("CXX") or "g++"
    found = shutil.which(compiler)
    if found is None:
        raise SetupError(
            f"building pycuda needs a C++ compiler, and {compiler} was not found",
            "on Debian and Ubuntu: apt-get install g++; or name one: CXX=/path/to/g++",
        )
    return found


def require_python_headers() -> None:
    """Refuse a Python without its headers, which many distributions package apart."""
    header = Path(sysconfig.get_path("include"), "Python.h")
    if not header.is_file():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(
            f"building pycuda needs the headers of Python {version}, and {header} is missing",
            f"on Debian and Ubuntu: apt-get install python{version}-dev",
        )


def install(compiler: str) -> None:
    """Fetch, configure, build and install."""
    with tempfile.TemporaryDirectory(prefix="wpk-pycuda-") as name:
        folder, began = Path(name), time.monotonic()
        say("fetching the source of pycuda, and CUDA's headers from wheels (about 25 MB)")
        pip("download", "--no-deps", "--no-binary", "pycuda", "--dest", folder, REQUIREMENT)
        pip("install", "--no-deps", "--target", folder / "headers", *HEADERS)
        source = unpack(folder)
        configure(source, folder / "headers" / INCLUDE, stub(folder, compiler))
        say(f"fetched in {time.monotonic() - began:.0f} s; building pycuda (a minute or two)")
        began = time.monotonic()
        pip("wheel", "--no-deps", "--wheel-dir", folder / "built", source)
        (wheel,) = (folder / "built").glob("pycuda-*.whl")
        say(f"built in {time.monotonic() - began:.0f} s; installing it")
        pip("install", wheel)


def pip(command: str, *arguments: str | Path) -> None:
    """Run pip for this Python; what it prints is shown where it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", command, "--disable-pip-version-check", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        print(done.stdout, file=sys.stderr)
        raise SetupError(
            f"pip {command} failed, exit code {done.returncode}; its output stands above",
            "without a network, carry what is missing: docs/gpu.md lists it",
        )


def unpack(folder: Path) -> Path:
    """Unpack the source archive that lies in a folder."""
    (archive,) = folder.glob("pycuda-*.tar.gz")
    safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since Python 3.11.4
    with tarfile.open(archive) as packed:
        packed.extractall(folder, **safely)
    return folder / archive.name.removesuffix(".tar.gz")


def stub(folder: Path, compiler: str) -> Path:
    """Make an empty library in the driver's name, so that pycuda asks for the driver's when it is loaded."""
    library = folder / "libcuda.so"
    command = [compiler, "-shared", f"-Wl,-soname,{DRIVER}", "-o", library, "-x", "c++", os.devnull]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(
            f"{compiler} cannot link a shared library: {done.stderr.strip()}",
            "install a working g++, or name one: CXX=/path/to/g++",
        )
    return library


def configure(source: Path, include: Path, library: Path) -> None:
    """Write pycuda's own file of settings. Distributions' --as-needed would drop a library that gives nothing."""
    settings = {
        "CUDA_INC_DIR": [str(include)],
        "CUDA_ENABLE_CURAND": False,
        "CUDADRV_LIB_DIR": [],
        "CUDADRV_LIBNAME": [],
        "CXXFLAGS": ["-g0"],  # what it would take to build and to store what a debugger wants
        "LDFLAGS": ["-Wl,--no-as-needed", str(library)],
    }
    lines = [f"{name} = {value!r}\n" for name, value in settings.items()]
    (source / "siteconf.py").write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
