"""Feature maps are stored channels last."""
