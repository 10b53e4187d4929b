"""All schedule templates, and those that can compute a problem."""

from dataclasses import dataclass
from typing import Any

from wpk.problems import Problem
from wpk.schedules.conv_mma import ConvMmaTemplate
from wpk.schedules.conv_simt import ConvSimtTemplate
from wpk.schedules.depthwise import DepthwiseTemplate
from wpk.schedules.elementwise import ElementwiseTemplate
from wpk.schedules.elementwise_tiled import ElementwiseTiledTemplate
from wpk.schedules.gather import GatherTemplate
from wpk.schedules.gemm_mma import GemmMmaTemplate
from wpk.schedules.gemm_simt import GemmSimtTemplate
from wpk.schedules.normalisation import NormalisationTemplate
from wpk.schedules.pad import PadTemplate
from wpk.schedules.pooling import PoolingTemplate
from wpk.schedules.reduction import ReductionTemplate
from wpk.schedules.resize import ResizeTemplate
from wpk.schedules.template import ScheduleTemplate
from wpk.targets.target import Target

TEMPLATES: tuple[ScheduleTemplate[Any, Any], ...] = (
    ConvMmaTemplate(),
    ConvSimtTemplate(),
    GemmMmaTemplate(),
    GemmSimtTemplate(),
    DepthwiseTemplate(),
    PoolingTemplate(),
    ReductionTemplate(),
    NormalisationTemplate(),
    ElementwiseTemplate(),
    ElementwiseTiledTemplate(),
    GatherTemplate(),
    PadTemplate(),
    ResizeTemplate(),
)
"""One instance of each."""


@dataclass(frozen=True)
class Applicable:
    """The templates of a problem.

    Attributes:
        templates: Those that can compute it.
        refusals: Name of every other template of its kind, and why not.
    """

    templates: tuple[ScheduleTemplate[Any, Any], ...]
    refusals: tuple[tuple[str, str], ...]


def templates_for(problem: Problem, target: Target) -> Applicable:
    """The templates that can compute a problem on a target, and why the others cannot."""
    fitting, refusals = [], []
    for template in TEMPLATES:
        if not isinstance(problem, template.problem_type):
            continue
        reason = template.why_not(problem, target)
        if reason is None:
            fitting.append(template)
        else:
            refusals.append((template.name, reason))
    return Applicable(tuple(fitting), tuple(refusals))
