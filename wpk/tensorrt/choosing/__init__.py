"""Which of an engine's layers the generated kernels replace, decided by measuring."""

from wpk.tensorrt.choosing.choose import choose
from wpk.tensorrt.choosing.inspector import (
    EngineInformation,
    EngineLayer,
    LayerTensor,
    parse_engine,
)
from wpk.tensorrt.choosing.measuring import Builder, Clock, Duel, Effort, Profiler, duel
from wpk.tensorrt.choosing.network import Network
from wpk.tensorrt.choosing.profile import LayerTime, Profile, profile_of_reports
from wpk.tensorrt.choosing.result import Choices, GroupChoice, Rebuild
