"""Machine code of plans: compiled again and compared, and what a GPU is not given without that."""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from wpk.build import KernelCache
from wpk.emulator import Emulator
from wpk.engine import compare_machine_code, load, loading, machine_code, require_executable
from wpk.engine.machine_code import Likeness
from wpk.errors import CompileError, EngineError, VerificationError
from wpk.execution import Image
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import read_plan, write_plan


@pytest.fixture(name="bundle")
def fixture_bundle(small_plan: Path) -> PlanBundle:
    return read_plan(small_plan)


def with_cubin(bundle: PlanBundle, digest: str, cubin: bytes) -> PlanBundle:
    """The plan with other machine code in one kernel, under its own digest."""
    kernel = replace(bundle.plan.kernels[digest], cubin_digest=sha256(cubin).hexdigest())
    plan = replace(bundle.plan, kernels={**bundle.plan.kernels, digest: kernel})
    return replace(bundle, plan=plan, cubins={**bundle.cubins, digest: cubin})


def exchanged(bundle: PlanBundle) -> PlanBundle:
    """The plan with the machine code of one kernel in another."""
    first, second, *_ = bundle.plan.kernels
    return with_cubin(bundle, first, bundle.cubins[second])


def made_by(bundle: PlanBundle, compiler: str) -> PlanBundle:
    kernels = {n: replace(k, compiler=compiler) for n, k in bundle.plan.kernels.items()}
    return replace(bundle, plan=replace(bundle.plan, kernels=kernels))


def test_an_honest_plan_is_the_same_to_the_byte(bundle: PlanBundle) -> None:
    found = compare_machine_code(bundle)
    assert found.likeness is Likeness.SAME
    assert f"{len(bundle.plan.kernels)} kernels, compiled here by nvrtc" in found.detail
    require_executable(found)


def test_what_was_never_compiled_here_is_compiled_to_be_compared(
    bundle: PlanBundle, tmp_path: Path
) -> None:
    told: list[tuple[str, int, int]] = []

    def tell(stage: str, done: int, total: int, left: float | None = None) -> None:
        told.append((stage, done, total))

    cache = KernelCache(tmp_path)
    assert "before" not in compare_machine_code(bundle, tell, cache=cache).detail
    count = len(bundle.plan.kernels)
    assert told[-1] == ("compiling kernels again", count, count)
    assert f"{count} of them before" in compare_machine_code(bundle, cache=cache).detail


def test_the_machine_code_of_another_kernel_is_noticed(bundle: PlanBundle) -> None:
    found = compare_machine_code(exchanged(bundle))
    assert found.likeness is Likeness.DIFFERS
    assert "of operator '" in found.detail
    with pytest.raises(VerificationError, match="is another one than nvrtc"):
        require_executable(found)


def test_one_byte_is_noticed(bundle: PlanBundle) -> None:
    digest, cubin = next(iter(bundle.cubins.items()))
    changed = cubin[:-1] + bytes([cubin[-1] ^ 1])
    assert compare_machine_code(with_cubin(bundle, digest, changed)).likeness is Likeness.DIFFERS


def test_another_compiler_is_not_comparable_and_never_ok(bundle: PlanBundle) -> None:
    found = compare_machine_code(made_by(exchanged(bundle), "nvrtc 99.1-7"))
    assert found.likeness is Likeness.NOT_COMPARABLE
    assert found.detail.startswith("made by nvrtc 99.1-7, here nvrtc ")
    with pytest.raises(EngineError, match=r"made by nvrtc 99.1-7, here nvrtc") as refused:
        require_executable(found)
    assert "--trust" in refused.value.fix


def test_without_a_compiler_nothing_is_comparable(
    bundle: PlanBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise CompileError("NVRTC is not installed", fix="install it")

    monkeypatch.setattr(machine_code, "compiler_here", none)
    found = compare_machine_code(bundle)
    assert found.likeness is Likeness.NOT_COMPARABLE
    assert found.detail == "NVRTC is not installed"


class Gpu(Emulator):
    """Takes machine code, as a GPU does, and notes which."""

    executes_source = False
    name = "a stand-in for a GPU"

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[bytes] = []

    def load(self, image: Image) -> None:
        self.loaded.append(image.cubin)  # type: ignore[union-attr]
        super().load(image)


@pytest.mark.parametrize(
    ("forge", "error"),
    [
        (exchanged, VerificationError),
        (lambda bundle: made_by(bundle, "nvrtc 99.1-7"), EngineError),
    ],
)
def test_a_gpu_is_given_foreign_machine_code_only_with_trust(
    bundle: PlanBundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    forge: object,
    error: type[Exception],
) -> None:
    gpu, path = Gpu(), tmp_path / "foreign.plan"
    monkeypatch.setattr(loading, "open_device", lambda name: gpu)
    foreign = forge(bundle)  # type: ignore[operator]
    write_plan(path, foreign)
    with pytest.raises(error):
        load(path, "gpu")
    assert gpu.loaded == []
    with load(path, "gpu", trust=True):
        assert sorted(gpu.loaded) == sorted(foreign.cubins.values())


def test_a_gpu_is_given_what_was_compiled_here(
    small_plan: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = Gpu()
    monkeypatch.setattr(loading, "open_device", lambda name: gpu)
    with load(small_plan, "gpu"):
        assert len(gpu.loaded) == len(read_plan(small_plan).plan.kernels)
