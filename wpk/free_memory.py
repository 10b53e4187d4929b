"""How much memory this machine has to give: who takes more is ended without a word."""

from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")


def free_bytes() -> int | None:
    """Bytes that a process may still take, also in a container with a limit; None where none says so."""
    return min(filter(None, (_of_machine(), _of_container())), default=None)


def _of_machine() -> int | None:
    if not _MEMINFO.is_file():
        return None
    lines = _MEMINFO.read_text(encoding="utf-8").splitlines()
    sizes = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(sizes[0]) * 1024 if sizes else None


def _of_container() -> int | None:
    """By the limit of the control group (version 2), where there is one; cached files make room."""
    if not (_CGROUP / "memory.max").is_file():
        return None
    most, used, kinds = (
        (_CGROUP / f"memory.{name}").read_text(encoding="utf-8").split()
        for name in ("max", "current", "stat")
    )
    if most == ["max"]:
        return None
    sizes = dict(zip(kinds[::2], map(int, kinds[1::2]), strict=True))
    taken = int(used[0]) - sizes["active_file"] - sizes["inactive_file"]
    return max(1, int(most[0]) - taken)
