"""The way onto a GPU: what a machine lacks is said before anything is made, and pycuda needs no toolkit."""

import importlib.util
import os
import shutil
import subprocess
import tomllib
import venv
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "pycuda_from_wheels.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """`scripts/pycuda_from_wheels.py`, on a machine without pycuda and with everything else."""
    spec = importlib.util.spec_from_file_location("pycuda_from_wheels", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "Python.h").touch()
    monkeypatch.setattr(module.sysconfig, "get_path", lambda _: str(tmp_path / "include"))
    monkeypatch.setattr(module, "installed", lambda: None)
    monkeypatch.setattr(module.ctypes, "CDLL", lambda _: _Driver(13000))
    monkeypatch.setattr(module.sys, "argv", ["pycuda_from_wheels.py", "--check"])
    return module


class _Driver:
    """Says which CUDA it is for."""

    def __init__(self, version: int) -> None:
        self.version = version

    def cuDriverGetVersion(self, pointer: Any) -> int:  # noqa: N802
        pointer._obj.value = self.version
        return 0


def _no_library(name: str) -> None:
    raise OSError(f"{name}: cannot open shared object file")


def test_a_machine_with_everything_passes(script: ModuleType) -> None:
    assert script.main() == 0


def test_each_thing_that_is_missing_is_named_with_its_fix(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module, name, value, what, fix in [
        (script.ctypes, "CDLL", _no_library, "no NVIDIA driver was found", "--no-driver"),
        (script.ctypes, "CDLL", lambda _: _Driver(12040), "for CUDA 12.4", "driver 580 or newer"),
        (script.shutil, "which", lambda _: None, "g++ was not found", "apt-get install g++"),
        (script.sysconfig, "get_path", lambda _: "/none", "/none/Python.h is missing", "-dev"),
    ]:
        with monkeypatch.context() as patch:
            patch.delenv("CXX", raising=False)
            patch.setattr(module, name, value)
            assert script.main() == 1
        said = capsys.readouterr().err.splitlines()
        assert said[0].startswith("wpk: error: ")
        assert what in said[0]
        assert said[1].startswith("  fix: ")
        assert fix in said[1]


def test_an_image_needs_no_driver(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script.ctypes, "CDLL", _no_library)
    monkeypatch.setattr(script.sys, "argv", ["pycuda_from_wheels.py", "--check", "--no-driver"])
    assert script.main() == 0


def test_what_pip_refuses_is_shown(
    script: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(script, "REQUIREMENT", str(tmp_path / "no-such-package.tar.gz"))
    monkeypatch.setattr(script.sys, "argv", ["pycuda_from_wheels.py"])
    assert script.main() == 1
    said = capsys.readouterr().err
    assert "no-such-package" in said
    assert "wpk: error: pip download failed" in said


def test_a_library_that_is_linked_with_the_stub_asks_for_the_drivers(
    script: ModuleType, tmp_path: Path
) -> None:
    library = script.stub(tmp_path, script.require_compiler())
    script.configure(tmp_path, tmp_path, library)
    settings: dict[str, Any] = {}
    exec((tmp_path / "siteconf.py").read_text(), settings)
    linked = tmp_path / "linked.so"
    flags = ["-Wl,--as-needed", *settings["LDFLAGS"]]  # as distributions' compilers begin
    command = ["g++", "-shared", "-x", "c++", os.devnull, "-x", "none", *flags, "-o", str(linked)]
    subprocess.run(command, check=True)
    assert b"libcuda.so.1\0" in linked.read_bytes()
    assert not settings["CUDA_ENABLE_CURAND"]


def test_the_version_of_pycuda_is_the_one_of_the_extra(script: ModuleType) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert script.REQUIREMENT in project["optional-dependencies"]["gpu"]


def _checkout(folder: Path) -> Path:
    """As much of a checkout as the script looks at before it installs anything."""
    (folder / "scripts").mkdir(parents=True)
    for name in (
        "scripts/environment",
        "scripts/pycuda_from_wheels.py",
        "pyproject.toml",
        "setup.py",
    ):
        shutil.copy(ROOT / name, folder / name)
    return folder


def _environment(
    checkout: Path, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [checkout / "scripts" / "environment", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **variables},
    )


def test_nothing_is_made_on_a_machine_that_lacks_a_compiler(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path / "wpk")
    done = _environment(
        checkout, "gpu", "--no-driver", CXX="no-such-compiler", PYTHON=_bare(tmp_path)
    )
    assert done.returncode == 1
    assert "no-such-compiler was not found" in done.stderr
    assert "fix: " in done.stderr
    assert not (checkout / ".venv").exists()


def _bare(folder: Path) -> str:
    """A Python without pycuda."""
    venv.create(folder / "bare", with_pip=False, symlinks=True)
    return str(folder / "bare" / "bin" / "python")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["gpu", "--into"], "--into names no Python"), (["--intro", "x"], "unknown option --intro")],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, arguments: list[str], words: str
) -> None:
    done = _environment(_checkout(tmp_path / "wpk"), *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_an_interpreter_without_pip_is_named(tmp_path: Path) -> None:
    bare = _bare(tmp_path)
    done = _environment(_checkout(tmp_path / "wpk"), "--into", bare)
    assert done.returncode == 1
    assert f"{bare} has no pip" in done.stderr


def test_an_environment_that_was_interrupted_is_made_again(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path / "wpk")
    venv.create(checkout / ".venv", with_pip=False, symlinks=True)
    done = _environment(
        checkout, PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path), PIP_CONFIG_FILE="/dev/null"
    )
    assert done.returncode != 0  # for want of setuptools
    assert "creating .venv" in done.stderr
    pip = [checkout / ".venv" / "bin" / "python", "-m", "pip", "--version"]
    assert subprocess.run(pip, capture_output=True, check=False).returncode == 0


def test_a_second_call_does_nothing(tmp_path: Path) -> None:
    checkout = _checkout(tmp_path / "wpk")
    (checkout / ".venv").mkdir()
    stamp = b"".join((checkout / name).read_bytes() for name in ("pyproject.toml", "setup.py"))
    (checkout / ".venv" / "installed-gpu").write_bytes(stamp)
    done = _environment(checkout, "gpu", CXX="no-such-compiler")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
@pytest.mark.exhaustive  # fetches and builds pycuda: minutes, and a network
@pytest.mark.timeout(1200)
def test_pycuda_is_built_without_a_toolkit(tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    tools = {tool: shutil.which(tool) for tool in ("g++", "gcc", "as", "ld")}
    path = os.pathsep.join(sorted({str(Path(found).parent) for found in tools.values() if found}))
    hidden = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")} | {"PATH": path}
    if shutil.which("nvcc", path=path):
        pytest.skip("nvcc lies beside the compiler")
    subprocess.run([python, SCRIPT, "--no-driver"], check=True, env=hidden)
    subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy"], check=True)
    done = subprocess.run(
        [python, "-c", "import pycuda.driver"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0 or "libcuda.so.1: cannot open shared object file" in done.stderr
