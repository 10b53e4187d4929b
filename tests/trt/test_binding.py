"""Which TensorRT is taken, and what is said where there is none that serves."""

import importlib
from types import ModuleType
from typing import Any

import pytest

from wpk.tensorrt import TensorRTError, binding_of, find_binding


def _module(name: str, version: str | None) -> ModuleType:
    module = ModuleType(name)
    if version is not None:
        module.__version__ = version  # type: ignore[attr-defined]
    return module


def _installed(monkeypatch: pytest.MonkeyPatch, found: dict[str, Any]) -> None:
    def imported(name: str) -> ModuleType:
        if name not in found:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        if isinstance(found[name], Exception):
            raise found[name]
        module: ModuleType = found[name]
        return module

    monkeypatch.setattr(importlib, "import_module", imported)


def test_the_full_one_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    both = {
        "tensorrt": _module("tensorrt", "10.13.3"),
        "tensorrt_rtx": _module("tensorrt_rtx", "1.7.1"),
    }
    _installed(monkeypatch, both)
    assert find_binding().title == "TensorRT 10.13.3"
    del both["tensorrt"]
    assert find_binding().title == "TensorRT for RTX 1.7.1"


def test_without_one_the_fix_names_both(monkeypatch: pytest.MonkeyPatch) -> None:
    _installed(monkeypatch, {})
    with pytest.raises(TensorRTError, match="no TensorRT is installed") as caught:
        find_binding()
    assert "pip install tensorrt)" in caught.value.fix
    assert "tensorrt-rtx" in caught.value.fix


@pytest.mark.parametrize("version", ["8.6.1", "9.3.0", "10.2.0"])
def test_what_is_too_old_is_refused(version: str) -> None:
    with pytest.raises(TensorRTError, match=f"TensorRT {version} is installed"):
        binding_of(_module("tensorrt", version), rtx=False)


def test_a_package_that_is_only_a_folder_is_refused() -> None:
    with pytest.raises(TensorRTError, match="states no version"):
        binding_of(_module("tensorrt", None), rtx=False)


@pytest.mark.parametrize(
    "error",
    [
        OSError("libnvinfer.so.10: cannot open shared object file"),
        ImportError("libnvinfer.so.10: cannot open shared object file"),
        ModuleNotFoundError("No module named 'tensorrt_libs'", name="tensorrt_libs"),
    ],
)
def test_one_without_its_libraries_is_not_passed_over(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    _installed(monkeypatch, {"tensorrt": error, "tensorrt_rtx": _module("tensorrt_rtx", "1.7.1")})
    with pytest.raises(TensorRTError, match="'tensorrt' is installed and cannot be loaded"):
        find_binding()
