"""Reshapes meet: they move past what leaves rows alone, and take each other back."""
