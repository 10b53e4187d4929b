"""The GPUs that wpk compiles for, and what the performance models know of them."""

from wpk.targets.largest import largest_target
from wpk.targets.registry import find_target, require_compilable, why_precision_unsupported
from wpk.targets.table import TARGETS
from wpk.targets.target import Target
from wpk.targets.target_file import load_target
