"""A small network and its plan."""

from small_plans import small_model, small_plan

__all__ = ["small_model", "small_plan"]
