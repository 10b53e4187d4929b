import pytest

from wpk.build.arch import check_arch
from wpk.errors import TargetError

SUPPORTED = (75, 80, 90, 100)


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90a", "sm_100f"])
def test_accepts_what_the_compiler_lists(arch: str) -> None:
    check_arch(arch, SUPPORTED)


@pytest.mark.parametrize("arch", ["sm_60", "sm_70"])
def test_refuses_pascal_and_volta_in_words(arch: str) -> None:
    with pytest.raises(TargetError, match="no longer builds for") as caught:
        check_arch(arch, SUPPORTED)
    assert "P100 and V100" in caught.value.fix


def test_refuses_an_architecture_the_compiler_does_not_know_yet() -> None:
    with pytest.raises(TargetError, match="only for sm_75, sm_80, sm_90, sm_100"):
        check_arch("sm_130", SUPPORTED)


@pytest.mark.parametrize("arch", ["", "90", "compute_90", "sm_90b", "sm_90a; rm"])
def test_refuses_what_is_no_architecture(arch: str) -> None:
    with pytest.raises(TargetError, match="is no GPU architecture"):
        check_arch(arch, SUPPORTED)
