"""The plan file, the engine that executes it, and the check of its numbers."""
