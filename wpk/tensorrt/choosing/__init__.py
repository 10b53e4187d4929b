"""Which of an engine's layers the generated kernels replace, decided by measuring."""

from wpk.tensorrt.choosing.autotuning import TimedTactic, TunedOperator, parse_autotuning
from wpk.tensorrt.choosing.inspector import (
    EngineInformation,
    EngineLayer,
    LayerTensor,
    parse_engine,
)
from wpk.tensorrt.choosing.latency import parse_latencies
from wpk.tensorrt.choosing.profile import LayerTime, Profile, parse_profile, profile_of_reports
