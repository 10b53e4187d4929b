"""What is said where a package or the driver is missing that a GPU needs."""

import sys
from pathlib import Path

import pytest

from wpk.device import bindings
from wpk.device.context import pycuda_driver
from wpk.errors import EngineError


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in front of all packages, in which a module fails to be imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pycuda", "cuda")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(tmp_path)
    for package in ("pycuda", "cuda"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    return tmp_path


def test_a_missing_package_is_told_apart_from_a_missing_driver(broken: Path) -> None:
    with pytest.raises(EngineError, match=r"needs pycuda, .* No module named") as caught:
        pycuda_driver()
    assert "scripts/environment gpu" in caught.value.fix
    (broken / "pycuda" / "driver.py").write_text(
        "raise ImportError('libcuda.so.1: cannot open shared object file')"
    )
    with pytest.raises(EngineError, match="needs an NVIDIA driver, and none was found") as caught:
        pycuda_driver()
    assert "install driver 580" in caught.value.fix


def test_missing_bindings_are_named(broken: Path) -> None:
    del broken
    with pytest.raises(EngineError, match="needs cuda-bindings") as caught:
        bindings()
    assert "scripts/environment gpu" in caught.value.fix
