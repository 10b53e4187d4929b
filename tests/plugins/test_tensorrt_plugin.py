"""``WpkKernel`` in real plugin registries, and through its life in a driver that plays TensorRT's part.

Needs what no package registry holds or what is large: ``WPK_TENSORRT_HEADERS`` names a folder with TensorRT's headers
as ``VERSION/include``, e.g. of https://github.com/NVIDIA/TensorRT, ``WPK_TENSORRT_LIBRARIES`` one that
``scripts/tensorrt_libraries`` filled.
"""

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from support.plans.executed_plans import image
from support.plugins import ROOT, SANITIZED, built, on_the_double

from wpk.dtypes import DType
from wpk.launch import CounterArgument, InputArgument, Launch, OutputArgument, SizeArgument
from wpk.spec import (
    Dimension,
    Format,
    LibraryCall,
    OperatorSpec,
    SpecKernel,
    SpecTensor,
    Variant,
    operator_bytes,
    operator_id,
)

CUDA_INCLUDE = os.environ.get("WPK_CUDA_INCLUDE", "/usr/local/cuda/include")


@dataclass(frozen=True, order=True)
class Version:
    """A version of TensorRT, of whose headers or library a folder is named."""

    major: int
    minor: int
    folder: Path


def versions(folder: str | None) -> list[Version]:
    """The versions that a folder holds, the oldest first."""
    if not folder:
        return []
    numbers = [(*map(int, each.name.split(".")[:2]), each) for each in Path(folder).iterdir()]
    return sorted(Version(*each) for each in numbers)


def each_of(argument: str, variable: str) -> pytest.MarkDecorator:
    """A test for each version in the folder that an environment variable names."""
    missing = pytest.param(
        None, marks=pytest.mark.skip(reason=f"{variable} names no folder"), id="none"
    )
    found = [pytest.param(each, id=each.folder.name) for each in versions(os.environ.get(variable))]
    return pytest.mark.parametrize(argument, found or [missing])


headers = each_of("header", "WPK_TENSORRT_HEADERS")
libraries = each_of("library", "WPK_TENSORRT_LIBRARIES")


def built_with(header: Version, *options: str) -> Path:
    """The folder of a build against headers, kept between runs beside the others."""
    kind = "sanitized" if options else "release"
    folder = ROOT / "build" / "tensorrt" / header.folder.name / kind
    return built(folder, *includes(header), *options)


def includes(header: Version) -> tuple[str, str]:
    """Options of CMake that name headers."""
    return (
        f"-DWPK_TENSORRT_INCLUDE={header.folder / 'include'}",
        f"-DWPK_CUDA_INCLUDE={CUDA_INCLUDE}",
    )


def operator() -> OperatorSpec:
    """A sum that is computed in two formats, with a counter, on the double of CUDA's driver."""
    digest = "ab" * 32
    launch = Launch(
        digest,
        "add",
        ("batch", 1, 1),
        (32, 1, 1),
        0,
        (InputArgument(0), SizeArgument("batch"), OutputArgument(0), CounterArgument(4)),
    )
    tensor = SpecTensor(DType.FP16, ("batch", 16, 4, 4))
    variants = (
        Variant("linear", (Format.LINEAR,) * 2, (launch,)),
        Variant("hwc8", (Format.HWC8,) * 2, (launch,)),
        # Where there is no such cuDNN, it is no tactic.
        Variant("cuDNN", (Format.LINEAR,) * 2, LibraryCall("cuDNN", "9.9", 0, (0,), b"")),
    )
    kernel = SpecKernel(digest, "add", "sm_90a", image("piaa"))
    return OperatorSpec(
        "add", (Dimension("batch", 0, 0),), (tensor,), (tensor,), (kernel,), variants
    )


def written(folder: Path, specs: Sequence[bytes]) -> list[Path]:
    paths = [folder / f"{number}.spec" for number in range(len(specs))]
    for path, spec in zip(paths, specs, strict=True):
        path.write_bytes(spec)
    return paths


def drive(
    *words: str | Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, words)), env=env, capture_output=True, text=True, check=False, timeout=300
    )


@headers
@libraries
def test_real_registries_take_the_plugin(header: Version, library: Version, tmp_path: Path) -> None:
    if (header.major, header.minor) > (library.major, library.minor):
        pytest.skip("a library is not asked for what its headers did not know")
    spec = operator()
    whole = operator_bytes(spec)
    missing, no_image = (
        operator_bytes(replace(spec, kernels=(replace(spec.kernels[0], cubin=cubin),)))
        for cubin in (b"", b"\x7fELF")
    )
    damaged = whole[:50] + b"\xff" + whole[51:]
    paths = written(tmp_path, [whole, whole[:-1], damaged, missing, no_image])
    known = versions(os.environ.get("WPK_TENSORRT_HEADERS"))
    same_major = max(each for each in known if each.major == library.major)
    (shared_object,) = library.folder.glob("**/libnvinfer_lean.so.*")
    done = drive(
        built_with(same_major) / "plugins" / "tests" / "drive_registry",
        shared_object,
        built_with(header) / "plugins" / "tensorrt" / "libwpk_tensorrt.so",
        paths[0],
        operator_id(whole),
        *paths[1:],
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok: deregistered" in done.stdout
    reasons = [line for line in done.stdout.splitlines() if line.startswith("reason: WpkKernel: ")]
    assert len(reasons) == 4
    assert all("fix:" in reason for reason in reasons)
    assert len(done.stderr.splitlines()) == 5, "the reasons, and that nothing was given"


@libraries
@pytest.mark.timeout(900)  # it builds twice where nothing is built yet
def test_a_library_that_registers_itself(library: Version) -> None:
    """One build for a major, whose registry it calls; the other build is no such library (the negative control)."""
    known = versions(os.environ.get("WPK_TENSORRT_HEADERS"))
    same_major = [each for each in known if each.major == library.major]
    if not same_major:
        pytest.skip("needs headers of the library's major")
    header = max(same_major)
    (shared_object,) = library.folder.glob("**/libnvinfer_lean.so.*")
    usual = built_with(header) / "plugins"
    folder = ROOT / "build" / "tensorrt" / header.folder.name / "static"
    static = built(folder, *includes(header), "-DWPK_STATIC_REGISTRATION=ON") / "plugins"
    found = [
        drive(
            usual / "tests" / "drive_registry",
            shared_object,
            each / "tensorrt" / "libwpk_tensorrt.so",
            "--static",
        )
        for each in (static, usual)
    ]
    assert found[0].returncode == 0, found[0].stdout + found[0].stderr
    assert "ok: their creator is found" in found[0].stdout
    assert found[1].returncode != 0


@headers
def test_the_life_of_a_plugin(header: Version, tmp_path: Path) -> None:
    spec = operator_bytes(operator())
    (path,) = written(tmp_path, [spec])
    build = built_with(header, *SANITIZED)
    record = tmp_path / "calls.txt"
    done = drive(
        build / "plugins" / "tests" / "drive_plugin",
        path,
        operator_id(spec),
        "--fail-allocations",
        env=on_the_double(build, record),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, *sums, last = done.stdout.splitlines()
    assert first.endswith("is no proof of working in TensorRT.")
    assert len(sums) == 6, "a tactic for each variant's formats, and three executions of the engine"
    assert len(set(sums)) == 1
    assert int(last.removeprefix("refused at each of ").split()[0]) > 100
    assert record.read_text().endswith("left 0\n")


@headers
def test_a_failing_driver_is_a_refusal(header: Version, tmp_path: Path) -> None:
    spec = operator_bytes(operator())
    (path,) = written(tmp_path, [spec])
    build = built_with(header, *SANITIZED)
    program = build / "plugins" / "tests" / "drive_plugin"
    record = tmp_path / "calls.txt"
    refusals = 0
    for failing in range(1, 200):
        # The driver of this test stops where it is refused, without giving its own memory back.
        env = {**on_the_double(build, record, failing), "ASAN_OPTIONS": "detect_leaks=0"}
        done = drive(program, path, operator_id(spec), env=env)
        assert done.returncode in (0, 1), done.stderr
        assert "Sanitizer" not in done.stderr
        if done.returncode == 0:
            break
        refusals += 1
    assert refusals > 10
