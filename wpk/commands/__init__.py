"""What the command line and Python share beside the pipeline: plans verified, and timed."""

from wpk.commands.benchmark import Benchmark, bench
from wpk.commands.verification import Verified, compare, scope_asked, verify
