"""The GPUs that wpk compiles for, and what the performance models know of them."""

from wpk.targets.driver_names import target_of_gpu
from wpk.targets.entry import DEPENDENT_LAUNCH_SECONDS
from wpk.targets.largest import largest_target
from wpk.targets.registry import (
    features_of,
    find_target,
    has_clusters,
    require_compilable,
    require_precision,
    why_precision_unsupported,
)
from wpk.targets.table import TARGETS
from wpk.targets.target import Target
from wpk.targets.target_file import as_file, load_target, named_target
