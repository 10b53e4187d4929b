"""A small network and its plan; checkouts with a history."""

from support.commits.checkouts import checkout, history
from support.plans.small_plans import small_model, small_plan

__all__ = ["checkout", "history", "small_model", "small_plan"]
