"""Reshapes, transposes and other moves of elements meet, merge and go."""
