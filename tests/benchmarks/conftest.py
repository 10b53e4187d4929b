"""A small network and its plan."""

from support.plans.small_plans import small_model, small_plan

__all__ = ["small_model", "small_plan"]
