"""What users install: complete, the same however it was installed, and light until it works."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = {"wpk": "wpk", "wpk/graph_passes": "graph_passes", "wpk/search": "search"}
HEAVY = ["cuda", "deap", "numpy", "onnx", "onnx_graphsurgeon", "onnxruntime", "pycuda", "tensorrt"]
COMMANDS = ["optimize", "run", "verify", "inspect", "report", "targets"]

BLOCKED = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {HEAVY!r}:
            raise ImportError(name + " is not to be imported here")

sys.meta_path.insert(0, Refuse())
"""


def _run(*command: str | Path, path: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    environment.pop("PYTHONPATH", None)
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("arguments", [["--help"], *([name, "--help"] for name in COMMANDS)])
def test_help_needs_nothing_heavy(arguments: Sequence[str]) -> None:
    program = f"{BLOCKED}\nfrom wpk.cli.main import main\nmain({arguments!r})"
    done = _run(sys.executable, "-c", program)
    assert done.returncode == 0, done.stderr
    assert "usage: wpk" in done.stdout


def test_importing_wpk_needs_nothing_heavy() -> None:
    done = _run(sys.executable, "-c", f"{BLOCKED}\nimport wpk\nprint(wpk.__version__)")
    assert done.returncode == 0, done.stderr


def test_the_blocker_blocks() -> None:
    done = _run(sys.executable, "-c", f"{BLOCKED}\nimport onnxruntime")
    assert "is not to be imported here" in done.stderr


def test_python_dash_m_works() -> None:
    done = _run(sys.executable, "-m", "wpk", "--version")
    assert done.stdout.startswith("wpk 0."), done.stderr


def test_the_version_is_stated_once() -> None:
    done = _run(sys.executable, "-m", "wpk", "--version")
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'version = "{done.stdout.split()[1]}"' in declared


@pytest.mark.parametrize("tool", ["ruff", "clang-format"])
def test_formatters_have_one_version_everywhere(tool: str) -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    (version,) = re.findall(rf"{tool}(?:-pre-commit)?\n    rev: v(\S+)", hooks)
    assert f'"{tool}=={version}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout without build leftovers, which setuptools would ship."""
    copy = tmp_path_factory.mktemp("checkout") / "wpk"
    skipped = shutil.ignore_patterns(
        ".git", ".venv", "build", "dist", "*.egg-info", "__pycache__", ".*_cache", "quickstart"
    )

    def skip(folder: str, names: list[str]) -> set[str]:
        inside_package = Path(folder) != ROOT
        kept = {"build"} if inside_package else set()  # wpk/build is a room, build/ a leftover
        return set(skipped(folder, names)) - kept

    shutil.copytree(ROOT, copy, symlinks=True, ignore=skip)
    return copy


@pytest.fixture(scope="session")
def distributions(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel built from that sdist."""
    folder = tmp_path_factory.mktemp("dist")
    done = _run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    return sdist, wheel


@pytest.mark.slow
def test_the_wheel_holds_the_tree_and_nothing_else(
    checkout: Path, distributions: tuple[Path, Path]
) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    tree = {f"{to}/{name}" for to, folder in FOLDERS.items() for name in _files(checkout / folder)}
    assert names == tree
    assert "wpk/py.typed" in names


@pytest.mark.slow
def test_the_sdist_holds_what_builds_and_tests_it(
    checkout: Path, distributions: tuple[Path, Path]
) -> None:
    with tarfile.open(distributions[0]) as sdist:
        names = {name.split("/", 1)[1] for name in sdist.getnames() if "/" in name}
    folders = [*FOLDERS.values(), "tests", "scripts", "docs", "examples", "benchmarks/subjects"]
    sources = {f"{folder}/{name}" for folder in folders for name in _files(checkout / folder)}
    assert sources <= names
    assert {"LICENSE", "README.md", "CHANGELOG.md", "setup.py", "pyproject.toml"} <= names


@pytest.mark.slow
def test_what_an_index_shows_of_both_is_valid(distributions: tuple[Path, Path]) -> None:
    done = _run(sys.executable, "-m", "twine", "check", "--strict", *distributions)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("PASSED") == len(distributions)


@pytest.fixture(scope="session")
def plain(distributions: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the wheel is installed; a module is compiled when it is imported."""
    folder = tmp_path_factory.mktemp("plain")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    done = _run(*pip, "--no-compile", "--target", folder, distributions[1])
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.slow
def test_a_plain_install_of_the_wheel_works(plain: Path) -> None:
    _check_installed(Path(sys.executable), plain / "wpk", path=plain)


@pytest.mark.slow
def test_an_editable_install_works(checkout: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    # Lends the dependencies, and no editable install of wpk: a path within a .pth file is searched
    # for packages, not for further .pth files.
    (packages / "lent.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps"]
    done = _run(
        *pip, "--no-index", "--no-build-isolation", "--ignore-installed", "--editable", checkout
    )
    assert done.returncode == 0, done.stderr
    _check_installed(python, checkout / "wpk")


@pytest.mark.parametrize("place", ["beside the clone", "in the clone"])
@pytest.mark.slow
def test_a_script_near_a_clone_gets_the_package(checkout: Path, plain: Path, place: str) -> None:
    """The folder of a script is the first on the path, and a clone is a folder called ``wpk``."""
    folder = checkout.parent if place == "beside the clone" else checkout
    script = folder / "near_a_clone.py"
    script.write_text(
        "import wpk, wpk.search, wpk.graph_passes.core.base; print(wpk.WpkError.__name__)"
    )
    editable = Path(sysconfig.get_path("purelib"))
    for installed in (plain, editable):
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONSAFEPATH"}
        path = {} if installed is editable else {"PYTHONPATH": str(installed)}
        done = subprocess.run(
            [sys.executable, script],
            capture_output=True,
            text=True,
            check=False,
            env={**environment, **path},
        )
        assert done.stdout.strip() == "WpkError", done.stderr


def _check_installed(python: Path, package: Path, path: Path | None = None) -> None:
    """The three folders import from where they were installed, and the command starts."""
    program = (
        "import wpk, wpk.search, wpk.graph_passes.core.base, wpk.build.pool; print(wpk.__file__)"
    )
    done = _run(python, "-c", program, path=path)
    assert done.stdout.strip() == str(package / "__init__.py"), done.stderr
    done = _run(python, "-m", "wpk", "--help", path=path)
    assert done.returncode == 0, done.stderr
