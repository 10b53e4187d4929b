"""Models drawn at random, and plans damaged on purpose: what scripts/fuzz and its tests run."""
