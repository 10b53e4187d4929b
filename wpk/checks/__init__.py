"""Whether numbers are right: references, tolerances, operators alone and whole engines."""
