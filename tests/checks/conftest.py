"""Fixtures of these tests."""

from quick_search import one_finalist
from small_plans import other_model, small_model, small_plan

__all__ = ["one_finalist", "other_model", "small_model", "small_plan"]
