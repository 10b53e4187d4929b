"""A package called wpk whose engines cost what a test says, to be served and to tune as that of another commit."""

from __future__ import annotations

import textwrap
from pathlib import Path

_FILES = {
    "__init__.py": "",
    "backends.py": """
        from contextlib import nullcontext

        class Device:
            def seconds(self, replay):
                with open({log!r}, "a") as log:
                    log.write("{name} begins\\n")
                    before = replay.once.count
                    replay.replay()
                    log.write("{name} ends\\n")
                return {cost} * (replay.once.count - before)

        def open_device(name):
            return nullcontext(Device())
    """,
    "engine.py": """
        from contextlib import nullcontext
        import numpy as np

        class Engine(nullcontext):
            def __init__(self, plan, device):
                super().__init__(self)
                self.replay = Replay()

            def run(self, inputs):
                return {{"y": inputs["x"] * {factor}}}

            def bind(self):
                return self

        class Replay:
            count = 0

            def replay(self):
                self.count += 1
                if self.count > {lives}:
                    raise SystemError("the kernel of {name} failed")

        def read_arrays(path):
            return dict(np.load(path))

        def write_arrays(path, arrays):
            np.savez(path, **arrays)
    """,
    "execution.py": "Replay = object",
    "plan/__init__.py": "",
    "plan/plan_file.py": """
        def read_plan(path):
            return path.read_text()
    """,
    "__main__.py": """
        import sys
        from pathlib import Path

        if {refuses}:
            sys.exit("wpk: error: {name} does not know this operator")
        Path(sys.argv[sys.argv.index("-o") + 1]).write_text("{name} " + " ".join(sys.argv[1:]))
    """,
}


def pretend_wpk(
    folder: Path,
    *,
    cost: float = 1e-4,
    factor: float = 1.0,
    lives: int = 1_000_000,
    refuses: bool = False,
) -> Path:
    """Write the package into a folder, which names it.

    Args:
        folder: Where to.
        cost: Seconds of a start, by its device's clock.
        factor: What its engines multiply the input ``x`` by.
        lives: Starts after which they fail.
        refuses: Whether it makes no plan.
    """
    given = {
        "name": folder.name,
        "log": str(folder.parent / "turns.log"),
        "cost": cost,
        "factor": factor,
        "lives": lives,
        "refuses": refuses,
    }
    for name, text in _FILES.items():
        path = folder / "wpk" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).format(**given))
    return folder
