"""Operands that are hard on arithmetic, and what must come out."""
