"""Fixtures of these tests."""

from support.plans.small_plans import other_model, small_model, small_plan

__all__ = ["other_model", "small_model", "small_plan"]
