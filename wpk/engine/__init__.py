"""A loaded plan, executed on the CPU or a GPU, on the caller's arrays and streams."""

from wpk.engine.arrays_file import read_arrays, write_arrays
from wpk.engine.engine import Engine
from wpk.engine.inputs import TakesInputs, bind_inputs, random_inputs, require_values
from wpk.engine.loading import load
from wpk.engine.machine_code import (
    Likeness,
    MachineCode,
    compare_machine_code,
    require_executable,
    require_same,
)
from wpk.engine.placement import from_memory, view
from wpk.engine.profiles import Profiles, load_profiles
from wpk.engine.regenerate import regenerate
from wpk.engine.times import EngineTimes, fallback_seconds, time_engine
from wpk.engine.weight_memory import WeightMemory
