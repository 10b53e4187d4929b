"""Whether numbers are right: references, tolerances, operators alone and whole engines."""

from wpk.checks.allowance import Allowance
from wpk.checks.bodies import scope_of_bodies, verify_with_bodies
from wpk.checks.float64_nodes import Array
from wpk.checks.foreign_engine import check_foreign_engine, require_right
from wpk.checks.operator_check import StepRunner
from wpk.checks.operator_reference import GraphReference, Reference
from wpk.checks.pass_proof import Interface, PassProof, interface_of, prove_passes, proven
from wpk.checks.prepared import StepCase
from wpk.checks.scope import QUICK_SEEDS, SEEDS, Scope, Tolerance, require_inputs, scope_of
from wpk.checks.verification import Verification, require_passed, verify, with_checks
