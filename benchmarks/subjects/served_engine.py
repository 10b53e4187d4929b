"""An engine that is timed on request, by whichever wpk stands first on the import path.

    python -P served_engine.py MODEL.plan INPUTS.npz OUTPUTS.npz gpu

It loads the plan, runs it once on the inputs, writes the outputs, and says on a line of JSON where its wpk lies. Then
it answers each line ``{"starts": 20}`` by ``{"seconds": 1.2e-4}``: of one of so many starts, one after another, between
two events on the GPU, behind as many that are not timed and bring caches and clocks to what they are while it runs.
Between two requests the GPU has nothing to do for it. On the CPU the clock is the machine's.

Engines of two commits are compared by this, so it uses only what the wpk of both has.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import wpk
from wpk.backends import open_device
from wpk.engine import Engine, read_arrays, write_arrays
from wpk.execution import Replay
from wpk.plan.plan_file import read_plan

GPU = "gpu"


class HostClock:
    """The machine's clock, for a device whose replays end before they return."""

    def seconds(self, replay: Replay) -> float:
        """Time of a replay."""
        begun = time.perf_counter()
        replay.replay()
        return time.perf_counter() - begun


@dataclass(frozen=True)
class Repeated:
    """Something started several times, one after another."""

    once: Replay
    times: int

    def replay(self) -> None:
        """Start it so many times."""
        for _ in range(self.times):
            self.once.replay()


def main(plan: str, inputs: str, outputs: str, device_name: str) -> None:
    """Serve until nobody asks any more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is no answer

    def answer(**said: Any) -> None:
        answers.write(json.dumps(said) + "\n")
        answers.flush()

    with open_device(device_name) as device, Engine(read_plan(Path(plan)), device) as engine:
        write_arrays(Path(outputs), engine.run(read_arrays(Path(inputs))))
        clock: Any = device if device_name == GPU else HostClock()
        once = engine.bind().replay
        answer(package=wpk.__path__[0])
        for request in sys.stdin:
            starts = Repeated(once, json.loads(request)["starts"])
            starts.replay()
            answer(seconds=clock.seconds(starts) / starts.times)


if __name__ == "__main__":
    main(*sys.argv[1:])
