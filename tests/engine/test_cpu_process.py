"""An engine on the CPU: in a process of its own, guarded, and never in a fork of the one that loaded it."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wpk.emulator import EmulatorError, EmulatorProcess
from wpk.engine import Engine, load, random_inputs
from wpk.errors import EngineError

pytestmark = pytest.mark.usefixtures("own_processes")


def child_of(engine: Engine) -> int:
    assert isinstance(engine.device, EmulatorProcess)
    return engine.device._child.pid


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_cpu_is_another_process_with_guarded_memory_and_ends_with_the_engine(
    small_plan: Path,
) -> None:
    with load(small_plan, "cpu") as engine:
        assert isinstance(engine.device, EmulatorProcess)
        assert engine.device.mode.guards
        child = child_of(engine)
        assert child != os.getpid()
        assert is_alive(child)
    assert not is_alive(child)


def test_an_engine_that_was_forgotten_leaves_no_process(small_plan: Path) -> None:
    engine = load(small_plan, "cpu")
    engine.run(random_inputs(engine.plan, 0))
    child = child_of(engine)
    del engine
    gc.collect()
    assert not is_alive(child)


def test_a_large_batch_is_given_more_time(small_plan: Path) -> None:
    with load(small_plan, "cpu") as engine:
        assert isinstance(engine.device, EmulatorProcess)
        engine.run(random_inputs(engine.plan, 0, {"batch": 5}))
        assert engine.device.patience == 5
        engine.run(random_inputs(engine.plan, 0))
        assert engine.device.patience == 1


def test_memory_that_the_machine_has_not_is_an_error_and_the_engine_goes_on(
    small_plan: Path,
) -> None:
    with load(small_plan, "cpu") as engine:
        with pytest.raises(EmulatorError, match="GiB is asked for"):
            engine.bind({"batch": 2**28})
        with pytest.raises(EngineError, match="GiB of this machine's memory are free"):
            random_inputs(engine.plan, 0, {"batch": 2**40})
        assert np.isfinite(engine.run(random_inputs(engine.plan, 0))["y"]).all()


FORKS = """
import os, sys
import wpk
from wpk.engine import random_inputs
from wpk.errors import EngineError

engine = wpk.load(sys.argv[1], device="cpu")
inputs = random_inputs(engine.plan, 0)
if sys.argv[2] == "run before":
    engine.run(inputs)
child = os.fork()
if child == 0:
    try:
        engine.run(inputs)
    except EngineError as error:
        engine.close()
        print(error.what, flush=True)
        sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
print(sorted(engine.run(inputs)))
engine.close()
"""


@pytest.mark.parametrize("when", ["run before", "loaded only"])
def test_a_fork_is_told_to_load_the_plan_itself_and_its_parent_goes_on(
    small_plan: Path, when: str
) -> None:
    command = [sys.executable, "-P", "-W", "ignore", "-c", FORKS, str(small_plan), when]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first.startswith("the engine was loaded before this process was forked off")
    assert second == "['y']"


def test_what_is_no_dictionary_of_arrays_is_refused_in_words(small_plan: Path) -> None:
    with load(small_plan, "cpu") as engine:
        for inputs in (None, [np.zeros(3)], "x"):
            with pytest.raises(EngineError, match="not by name"):
                engine.run(inputs)  # type: ignore[arg-type]
        for array in (None, "text", [[1.0], [1.0, 2.0]], object()):
            with pytest.raises(EngineError, match=r"'x' (has type|is no array)"):
                engine.run({"x": array})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("dims", "reason"),
    [
        ({"batch": "x"}, "'batch' is given the size 'x'"),
        ({"batch": 0}, "'batch' is given the size 0"),
        ({"batch": True}, "size True"),
        ({"batch": 1.5}, "size 1.5"),
        ({"Q": 1}, "no free dimension 'Q'"),
        ([1], "not by name"),
    ],
)
def test_sizes_that_no_dimension_has_are_refused_in_words(
    small_plan: Path, dims: object, reason: str
) -> None:
    with load(small_plan, "cpu") as engine, pytest.raises(EngineError, match=reason):
        engine.bind(dims)  # type: ignore[arg-type]
