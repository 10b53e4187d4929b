"""Schedule templates: Python decides, CUDA computes, and only numbers cross."""

from wpk.schedules.early import EARLY
from wpk.schedules.packings import pack, packed_shape
from wpk.schedules.registry import TEMPLATE_OF, TEMPLATES
from wpk.schedules.template import Schedule, ScheduleTemplate
