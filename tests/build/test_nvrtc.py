import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from wpk.build import load_nvrtc
from wpk.build.nvrtc import Nvrtc, find_nvrtc
from wpk.build.nvrtc import options as nvrtc_options
from wpk.errors import CompileError, TargetError
from wpk.kernel_source import KernelSource

Fill = Callable[[int], KernelSource]


def test_finds_the_library_of_the_wheel() -> None:
    assert find_nvrtc().name.startswith("libnvrtc.so.")
    assert find_nvrtc().is_file()


def test_the_library_is_loaded_once() -> None:
    assert load_nvrtc() is load_nvrtc()


def test_what_it_opens_by_name_is_there_before_it_does() -> None:
    script = "from wpk.build import load_nvrtc; load_nvrtc(); print(open('/proc/self/maps').read())"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], capture_output=True, text=True, check=True
    )
    assert "/libnvrtc-builtins.so." in done.stdout


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_compiles_without_a_gpu(nvrtc: Nvrtc, fill: Fill, arch: str) -> None:
    kernel = nvrtc.compile(fill(3), arch)
    assert kernel.cubin.startswith(b"\x7fELF")
    assert (kernel.entry, kernel.arch) == ("fill", arch)
    assert kernel.digest == fill(3).digest
    assert 0 < kernel.resources.registers < 32
    assert not kernel.resources.spills


def test_the_same_source_gives_the_same_bytes(nvrtc: Nvrtc, fill: Fill) -> None:
    first, second = (nvrtc.compile(fill(3), "sm_90a").cubin for _ in range(2))
    assert first == second


def test_concepts_of_cpp20_compile(nvrtc: Nvrtc) -> None:
    text = """
    template <typename T> concept Word = sizeof(T) == 4;
    template <Word T> __device__ void put(T* out) { *out = T(1); }
    extern "C" __global__ void k(float* out) { put(out); }
    """
    assert nvrtc.compile(KernelSource("k", text), "sm_90a").entry == "k"


def test_reads_no_header_from_the_disk(
    nvrtc: Nvrtc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beside.h").write_text("#define VALUE 1\n")
    monkeypatch.chdir(tmp_path)
    text = '#include "beside.h"\nextern "C" __global__ void k(int* out) { *out = VALUE; }'
    with pytest.raises(CompileError, match=r"beside\.h"):
        nvrtc.compile(KernelSource("k", text), "sm_90a")


def test_an_error_names_kernel_line_and_reason(nvrtc: Nvrtc, broken: KernelSource) -> None:
    with pytest.raises(
        CompileError, match=r"broken failed to compile for sm_90a: broken\.cu\(1\)"
    ) as e:
        nvrtc.compile(broken, "sm_90a")
    assert "undeclared" in str(e.value)
    copy = pickle.loads(pickle.dumps(e.value))
    assert (copy.what, copy.fix) == (e.value.what, e.value.fix)


def test_too_much_shared_memory_is_an_error_of_the_compile(nvrtc: Nvrtc) -> None:
    text = """
    extern "C" __global__ void big(float* out) {
        __shared__ float row[131072];
        row[threadIdx.x] = out[threadIdx.x];
        __syncthreads();
        out[threadIdx.x] = row[threadIdx.x ^ 1];
    }
    """
    with pytest.raises(CompileError, match="too much shared data"):
        nvrtc.compile(KernelSource("big", text), "sm_90a")


def test_refuses_a_unit_that_lacks_its_entry(nvrtc: Nvrtc, fill: Fill) -> None:
    text = fill(1).text
    with pytest.raises(CompileError, match="the unit of other defines fill"):
        nvrtc.compile(KernelSource("other", text), "sm_90a")


def test_refuses_volta_in_words(nvrtc: Nvrtc, fill: Fill) -> None:
    with pytest.raises(TargetError, match="Volta and older"):
        nvrtc.compile(fill(1), "sm_70")


def test_a_library_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "libnvrtc.so.13").write_bytes(b"nothing")
    with pytest.raises(CompileError, match=r"libnvrtc\.so\.13") as caught:
        load_nvrtc(tmp_path / "libnvrtc.so.13")
    assert "pip install nvidia-cuda-nvrtc" in caught.value.fix


def test_no_option_reaches_for_the_disk() -> None:
    assert not [option for option in nvrtc_options("sm_90a") if "-I" in option or "/" in option]
