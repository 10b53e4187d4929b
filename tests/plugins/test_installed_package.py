"""What ``cmake --install`` installs: the header, and a package that the example's C program finds and is built with."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.plans.executed_plans import BRANCHES, branches_by_numpy
from support.plugins import ROOT, SANITIZERS, on_the_double

EXAMPLE = ROOT / "examples" / "c_api"
STRICT = ("-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only")
FUNCTIONS_AT_LEAST = 15


def called(*words: str | Path, env: dict[str, str] | None = None) -> str:
    """What a command prints, which must succeed."""
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "warning" not in done.stderr, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def installed(sanitized: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The prefix of an installation."""
    prefix = tmp_path_factory.mktemp("installed")
    called("cmake", "--install", sanitized, "--prefix", prefix)
    return prefix


@pytest.fixture(scope="module")
def example(sanitized: Path, installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's program, linked with the double of CUDA's driver."""
    headers = sorted(Path("/usr/local").glob("cuda*/include/cuda.h"))
    if not headers:
        pytest.skip("needs cuda.h, of a CUDA toolkit in /usr/local")
    folder = tmp_path_factory.mktemp("example")
    double = sanitized / "plugins" / "tests" / "librecording_cuda.so"
    options = {
        "CMAKE_PREFIX_PATH": installed,
        "CMAKE_C_FLAGS": f"-fsanitize={SANITIZERS} -Wall -Wextra -pedantic -Werror",
        "CUDA_INCLUDE": headers[-1].parent,
        "CUDA_DRIVER": double,
    }
    given = [f"-D{name}={value}" for name, value in options.items()]
    called("cmake", "-S", EXAMPLE, "-B", folder, *given)
    called("cmake", "--build", folder)
    return folder / "run_plan"


@pytest.mark.parametrize("language", ["c99", "c11", "c++17", "c++20"])
def test_the_header_is_plain_c_and_cpp(
    sanitized: Path, installed: Path, tmp_path: Path, language: str
) -> None:
    del sanitized  # which skips where nothing can be built
    is_cpp = "++" in language
    compiler = shutil.which("g++" if is_cpp else "gcc") or pytest.skip("needs gcc and g++")
    unit = tmp_path / ("unit.cpp" if is_cpp else "unit.c")
    unit.write_text("#include <wpk.h>\nwpk_engine* engine;\n", encoding="utf-8")
    called(compiler, f"-std={language}", *STRICT, "-I", installed / "include", unit)


def test_the_library_gives_the_functions_of_the_header_and_nothing_else(installed: Path) -> None:
    (library,) = installed.glob("lib*/libwpk.so")
    tool = shutil.which("nm") or pytest.skip("needs nm")
    lines = called(tool, "-D", "--defined-only", library).splitlines()
    given = {line.split()[-1] for line in lines if " T " in line}
    header = (installed / "include" / "wpk.h").read_text(encoding="utf-8")
    declared = set(re.findall(r"WPK_API [^;(]*?(wpk_\w+)\(", header))
    assert len(declared) > FUNCTIONS_AT_LEAST
    assert given == declared


def test_the_installed_program_finds_its_library(
    sanitized: Path, installed: Path, tmp_path: Path
) -> None:
    plan = BRANCHES.write(tmp_path / "m.plan")
    env = on_the_double(sanitized, tmp_path / "calls")
    said = called(installed / "bin" / "wpk-run", plan, env=env)
    assert said.startswith("input\tx\tfp32[2, 4]\n")


def test_the_example_prints_what_the_plan_gives(
    sanitized: Path, example: Path, tmp_path: Path
) -> None:
    x = np.random.default_rng(3).integers(-9, 9, (2, 4)).astype(np.float32)
    x.tofile(tmp_path / "x")
    env = on_the_double(sanitized, tmp_path / "calls")
    said = called(example, BRANCHES.write(tmp_path / "m.plan"), tmp_path / "x", env=env)
    first = " ".join(f"{value:g}" for value in branches_by_numpy(x).flat[:4])
    assert said == f"y: 32 bytes {first}\n"
    calls = (tmp_path / "calls").read_text(encoding="utf-8").splitlines()
    assert calls[-1] == "left 0"
    assert not [line for line in calls if line.startswith("wrong")]


def test_the_example_says_what_is_wrong(sanitized: Path, example: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [example, tmp_path / "no.plan"],
        env=on_the_double(sanitized, tmp_path / "calls") | {"ASAN_OPTIONS": "detect_leaks=0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "run_plan: cannot open the plan: " in done.stderr
    assert "No such file" in done.stderr


def test_another_version_is_not_found(installed: Path, tmp_path: Path) -> None:
    source = "cmake_minimum_required(VERSION 3.22)\nproject(p C)\nfind_package(wpk 99 REQUIRED)\n"
    (tmp_path / "CMakeLists.txt").write_text(source, encoding="utf-8")
    words = ["cmake", "-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={installed}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "wpk-config.cmake, version: " in done.stderr
