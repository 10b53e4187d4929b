"""What a plan is: its types, its file, memory and order of its steps."""

from wpk.plan.binding import (
    StepAddresses,
    arena,
    bind_step,
    counter_bytes,
    element_bytes,
    library_images,
    order_of,
    pieces,
    workspace_bytes,
)
from wpk.plan.checks.whole_plan import check_sizes
from wpk.plan.control import CONTROL
from wpk.plan.foreign import tool_for
from wpk.plan.forms import Begun, FormOutcome, FormSearch, TriedForm
from wpk.plan.measurement import (
    Contestant,
    Curve,
    EngineMeasurement,
    EngineVariant,
    Measurement,
    Ratio,
    Tally,
)
from wpk.plan.memory import Layout, MemoryPlan, lifetimes, plan_memory
from wpk.plan.order import Order
from wpk.plan.output_file import atomic_file, require_folder
from wpk.plan.plan import (
    SCHEMA,
    Check,
    CheckMode,
    Evidence,
    Funnel,
    Kernel,
    Memory,
    Outcome,
    Plan,
    PlanBundle,
    Step,
    Weight,
)
from wpk.plan.plan_file import (
    Paths,
    bundle_of,
    plan_digest,
    plan_text,
    read_plan,
    write_plan,
)
from wpk.plan.ports import KeptOutput, Port
from wpk.plan.provenance import PassSummary, Provenance, RefusalSummary
from wpk.plan.spec_of_plan import work_of
from wpk.plan.tensors import Tensors, tensors_of
from wpk.plan.weights_file import array_bytes, array_digest
