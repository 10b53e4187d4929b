"""Damaged files: what Python does not take for a plan, C++ does not either, and it survives all of them."""

import io
import random
import zipfile
from pathlib import Path

import pytest
from support.plans.executed_plans import BRANCHES, write_members
from support.plugins import run_plan

from wpk.errors import PlanError
from wpk.plan.container import read_container

UNREAD = ("plan.json", "plan.sha256")
"""Members that C++ does not execute, so that it does not read them."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("whole") / "m.plan"
    return BRANCHES.write(path).read_bytes()


def python_refuses(path: Path) -> bool:
    try:
        read_container(path)
    except PlanError:
        return True
    return False


def require_refused(build: Path, path: Path) -> None:
    ran = run_plan(build, path)
    assert ran.code == 1, (ran.code, ran.output, ran.error)
    assert "; fix: " in ran.error


def unread(data: bytes) -> set[int]:
    """Places whose bytes C++ does not look at."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        places: set[int] = set()
        for info in archive.infolist():
            if info.filename in UNREAD:
                begin = info.header_offset + 30 + len(info.filename)
                places.update(range(begin, begin + info.file_size))
    return places


def test_changed_bytes_are_refused_as_by_python(
    sanitized: Path, whole: bytes, tmp_path: Path
) -> None:
    draw, skipped = random.Random(2), unread(whole)
    for _ in range(120):
        at = draw.randrange(len(whole))
        if at in skipped:
            continue
        path = tmp_path / "m.plan"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << draw.randrange(8)]) + whole[at + 1 :])
        assert python_refuses(path), at
        require_refused(sanitized, path)


def test_cut_files_are_refused(sanitized: Path, whole: bytes, tmp_path: Path) -> None:
    draw = random.Random(3)
    path = tmp_path / "m.plan"
    for size in (0, 1, 21, 22, len(whole) - 1, *(draw.randrange(len(whole)) for _ in range(25))):
        path.write_bytes(whole[:size])
        assert python_refuses(path)
        require_refused(sanitized, path)


@pytest.mark.parametrize("where", ["in front", "behind"])
def test_more_bytes_are_refused(sanitized: Path, whole: bytes, tmp_path: Path, where: str) -> None:
    path = tmp_path / "m.plan"
    path.write_bytes(b"#!" + whole if where == "in front" else whole + b"more")
    assert python_refuses(path)
    require_refused(sanitized, path)


def zipped(path: Path, method: int) -> None:
    """As any program would write a zip."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in BRANCHES.members().items():
            archive.writestr(name, data)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_zips_of_other_programs_are_refused(sanitized: Path, tmp_path: Path, method: int) -> None:
    path = tmp_path / "m.plan"
    zipped(path, method)
    assert python_refuses(path)
    require_refused(sanitized, path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused(sanitized: Path, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.plan"
    path.write_bytes(whole)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("plan.spec", BRANCHES.members()["plan.spec"])
    assert python_refuses(path)
    require_refused(sanitized, path)


@pytest.mark.parametrize("name", ["../plan.json", "kernels/ab.cubin", "", "plan.spec2"])
def test_other_members_are_refused(sanitized: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "m.plan"
    write_members(path, BRANCHES.members() | {name: b"data"})
    assert python_refuses(path)
    require_refused(sanitized, path)


def test_a_whole_file_is_taken(sanitized: Path, whole: bytes, tmp_path: Path) -> None:
    path = tmp_path / "m.plan"
    path.write_bytes(whole)
    assert not python_refuses(path)
    assert run_plan(sanitized, path).code == 0
