"""The bench compiles, checks and times candidates on a GPU, each as a step of its own."""

from wpk.bench.bench import Bench
from wpk.bench.cases import Case, Cases, make_cases
from wpk.bench.compile_ahead import CompileAhead, Submit
from wpk.bench.gpu_lease import GpuLease
from wpk.bench.host_memory import require_memory
from wpk.bench.odd_shapes import OddShapes
from wpk.bench.offers import Offers
from wpk.bench.request import Request
from wpk.bench.trials import TrialRunner
