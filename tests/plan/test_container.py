"""How large the members of a plan may be: what a file claims is judged before it is read."""

import zipfile
from pathlib import Path

import pytest

from wpk.errors import PlanError
from wpk.plan.container import read_container
from wpk.plan.plan import PlanBundle
from wpk.plan.plan_file import write_plan

MIB = 2**20


@pytest.fixture
def path(tmp_path: Path, bundle: PlanBundle) -> Path:
    write_plan(tmp_path / "small.plan", bundle)
    return tmp_path / "small.plan"


@pytest.mark.parametrize(
    ("member", "limit"),
    [
        ("plan.json", 256 * MIB),
        ("plan.spec", 256 * MIB),
        ("plan.sha256", 256),
        (f"kernels/{'ab' * 32}.cubin", 64 * MIB),
        (f"kernels/{'ab' * 32}.cu", 64 * MIB),
        ("weights.safetensors", None),
    ],
)
def test_a_member_claims_no_more_than_its_kind_may(
    path: Path, member: str, limit: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = zipfile.ZipFile.infolist

    def claiming(size: int) -> str:
        def infolist(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
            found = listed(archive)
            info = next(each for each in found if each.filename == member)
            info.file_size = info.compress_size = size
            return found

        monkeypatch.setattr(zipfile.ZipFile, "infolist", infolist)
        with pytest.raises(PlanError) as seen:
            read_container(path)
        return str(seen.value)

    if limit is not None:
        assert f"claims {limit + 1} bytes of at most {limit}" in claiming(limit + 1)
    assert "of at most" not in claiming(limit or 2**50)
    assert limit is not None or "its members claim" in claiming(path.stat().st_size)


def test_an_encrypted_member_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = zipfile.ZipFile.infolist

    def infolist(archive: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
        found = listed(archive)
        found[-1].flag_bits |= 1
        return found

    monkeypatch.setattr(zipfile.ZipFile, "infolist", infolist)
    with pytest.raises(PlanError, match=r"has an encrypted member 'plan\.sha256'"):
        read_container(path)


@pytest.mark.parametrize(
    ("count", "said"),
    [(20_001, "has 20001 members; a plan has at most 20000"), (20_000, "a member 'none'")],
)
def test_a_plan_has_twenty_thousand_members_at_most(
    path: Path, count: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = [zipfile.ZipInfo("none")] * count
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda archive: many)
    with pytest.raises(PlanError, match=said):
        read_container(path)


def test_members_were_made_in_1980_by_nobody(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert (info.create_system, info.external_attr >> 16, info.flag_bits) == (3, 0o644, 0)
