"""From implementations to a plan, its evidence and its lock, and back from a lock."""

from wpk.assembly.assemble import Setting, assemble, step_of
from wpk.assembly.evidence import EvidenceBook, predicted_evidence, with_evidence, with_phases
from wpk.assembly.from_lock import (
    compile_locked,
    implementations_of,
    locked_bodies,
    require_fit,
    require_locked_plan,
    require_target,
)
from wpk.assembly.implementation import Implementation, by_library, generated
from wpk.assembly.lock import Lock, read_lock, write_lock
from wpk.assembly.origin import model_digest, provenance
from wpk.assembly.packed_constants import PackedConstants
from wpk.assembly.ports import input_ports
from wpk.assembly.weight_store import WeightStore
