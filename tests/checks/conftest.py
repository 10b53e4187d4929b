"""Fixtures of these tests."""

from small_plans import other_model, small_model, small_plan

__all__ = ["other_model", "small_model", "small_plan"]
