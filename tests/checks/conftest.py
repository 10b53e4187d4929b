"""Fixtures of these tests."""

from support.plans.small_plans import other_model, small_model, small_plan_of_each_precision

__all__ = ["other_model", "small_model", "small_plan_of_each_precision"]
