"""The zip around the members, byte for byte as Python's zipfile writes it, wherever sizes become large."""

import zipfile
from pathlib import Path

import pytest

from wpk.plan.container import member_of, write_container
from wpk.plan.container_layout import differs


def where(path: Path) -> str | None:
    with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
        return differs(stream, archive)


@pytest.mark.parametrize(
    "contents",
    [
        {"first": bytes(100), "second": bytes(10), "third": b""},
        {"one": b"", "two": b"", "three": b""},  # the directory is larger than all it names
        {},
    ],
    ids=["members", "empty members", "nothing"],
)
def test_every_part_may_be_the_first_that_32_bits_do_not_hold(
    tmp_path: Path, contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, forms = tmp_path / "zip", set()
    monkeypatch.setattr("os.fsync", lambda number: None)  # it takes most of the time
    for limit in range(300):  # instead of 4 GiB
        monkeypatch.setattr(zipfile, "ZIP64_LIMIT", limit)
        write_container(path, {name: member_of(data) for name, data in contents.items()})
        assert where(path) is None, limit
        forms.add(path.stat().st_size)
    assert len(forms) > len(contents)


@pytest.mark.parametrize(
    ("front", "behind", "said"),
    [
        (b"", b"", None),
        (b"#", b"", "in front of member 'one'"),
        (b"", b"\n", "behind its last member"),
        (b"", b"# and more", "behind its last member"),
    ],
)
def test_nothing_stands_in_front_of_a_zip_or_behind_it(
    tmp_path: Path, front: bytes, behind: bytes, said: str | None
) -> None:
    path = tmp_path / "zip"
    write_container(path, {"one": member_of(b"1"), "two": member_of(b"22")})
    comment = len(behind).to_bytes(2, "little")
    path.write_bytes(front + path.read_bytes()[:-2] + comment + behind)
    assert where(path) == said
