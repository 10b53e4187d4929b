"""The bench compiles, checks and times candidates on a GPU, each as a step of its own."""

from wpk.trial_bench.bench import Bench
from wpk.trial_bench.cases import Case
from wpk.trial_bench.compile_ahead import CompileAhead, Submit
from wpk.trial_bench.form_cases import FormCases
from wpk.trial_bench.gpu_lease import GpuLease
from wpk.trial_bench.host_memory import SEEDS, fitting, reference_bytes, require_memory
from wpk.trial_bench.model_cases import ModelCases
from wpk.trial_bench.odd_shapes import OddShapes
from wpk.trial_bench.offers import Offers
from wpk.trial_bench.request import Request
from wpk.trial_bench.trials import TrialRunner
