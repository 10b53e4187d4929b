"""The zip that a plan is: stored members only, in a fixed order, with nothing that depends on when.

Reading trusts nothing: names, methods and sizes are checked before a byte is read, and since nothing
is compressed no member can unfold to more than the file holds. Besides the members there is nothing
(`wpk.plan.container_layout`).
"""

import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from wpk.closed_models import MAX_BYTES
from wpk.errors import PlanError
from wpk.plan.container_layout import differs
from wpk.plan.foreign import refuse_others
from wpk.plan.output_file import atomic_file

PLAN = "plan.json"
SPEC = "plan.spec"
WEIGHTS = "weights.safetensors"
DIGEST = "plan.sha256"

MAX_MEMBERS = 20_000
MAX_PLAN_BYTES = 256 * 2**20
MAX_KERNEL_BYTES = 64 * 2**20
MAX_DIGEST_BYTES = 256
_LIMITS = {PLAN: MAX_PLAN_BYTES, SPEC: MAX_PLAN_BYTES, DIGEST: MAX_DIGEST_BYTES, WEIGHTS: None}

_NAME = re.compile(
    r"plan\.(json|spec|sha256)|weights\.safetensors|kernels/[0-9a-f]{64}\.(cubin|cu)"
    r"|models/[0-9a-f]{64}\.onnx"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)

_HEADER_BYTES, _NAME_LENGTH_AT = 30, 26
"""Of a member's header without its name and its extra fields, and where it says how long those are."""

Writer = tuple[int, Callable[[BinaryIO], None]]
"""How many bytes a member has, and what writes them."""


def write_container(path: Path, members: dict[str, Writer]) -> None:
    """Write members in the order given, atomically; equal members give equal bytes.

    Raises:
        OutputError: The file cannot be written.
    """
    with atomic_file(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, (size, write) in members.items():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = 0o644 << 16
            with archive.open(info, "w", force_zip64=size > zipfile.ZIP64_LIMIT) as member:
                write(member)  # type: ignore[arg-type]  # zipfile types its writer as IO[bytes]


def member_of(data: bytes) -> Writer:
    """A member whose bytes are at hand."""

    def write(stream: BinaryIO) -> None:
        stream.write(data)

    return len(data), write


def read_container(path: Path) -> dict[str, bytes]:
    """All members by name.

    Raises:
        PlanError: The file is missing, something else than a plan, no zip, cut off, or has members
            that no plan has.
    """
    if not path.is_file():
        raise PlanError(f"{path} is not a file", fix="give the path of a plan")
    refuse_others(path)
    try:
        with path.open("rb") as stream, zipfile.ZipFile(stream) as archive:
            _check_members(path, archive.infolist())
            found = {info.filename: _read(stream, info) for info in archive.infolist()}
            where = differs(stream, archive)
            if where is not None:
                raise _damaged(path, f"holds something {where} that no plan has there")
            return found
    except PlanError:
        raise
    except OSError as error:
        raise PlanError(
            f"{path} cannot be read: {error.strerror or error}", fix="check the file's permissions"
        ) from error
    except (
        zipfile.BadZipFile,
        EOFError,
        ValueError,
        NotImplementedError,
        RuntimeError,
        OverflowError,
    ) as error:
        raise _damaged(path, f"is no plan, or is cut off: {error}") from error


def _read(stream: BinaryIO, info: zipfile.ZipInfo) -> bytes:
    """A stored member; zipfile copies one of several gigabytes again for each further two that it reads."""
    stream.seek(info.header_offset + _NAME_LENGTH_AT)
    lengths = stream.read(4)
    name, extra = (int.from_bytes(lengths[at : at + 2], "little") for at in (0, 2))
    stream.seek(info.header_offset + _HEADER_BYTES + name + extra)
    data = stream.read(info.file_size)
    if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
        raise zipfile.BadZipFile(f"the bytes of member {info.filename!r} are not those that it had")
    return data


def _check_members(path: Path, infos: list[zipfile.ZipInfo]) -> None:
    if len(infos) > MAX_MEMBERS:
        raise _damaged(path, f"has {len(infos)} members; a plan has at most {MAX_MEMBERS}")
    seen: set[str] = set()
    total = 0
    for info in infos:
        name = info.filename
        if _NAME.fullmatch(name) is None:
            raise _damaged(path, f"has a member {name[:80]!r}, which no plan has")
        if name in seen:
            raise _damaged(path, f"has two members {name!r}")
        seen.add(name)
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise _damaged(path, f"has a compressed member {name!r}; plans are stored")
        if info.flag_bits & 1:
            raise _damaged(path, f"has an encrypted member {name!r}")
        limit = _LIMITS.get(name, MAX_BYTES if name.startswith("models/") else MAX_KERNEL_BYTES)
        if limit is not None and info.file_size > limit:
            raise _damaged(
                path, f"member {name!r} claims {info.file_size} bytes of at most {limit}"
            )
        total += info.file_size
    if total > path.stat().st_size:
        raise _damaged(path, f"its members claim {total} bytes, the file has {path.stat().st_size}")
    for name in (PLAN, SPEC, WEIGHTS, DIGEST):
        if name not in seen:
            raise _damaged(path, f"has no member {name!r}")


def _damaged(path: Path, what: str) -> PlanError:
    return PlanError(f"{path} {what}", fix="copy the plan again, or write it again: wpk optimize")
