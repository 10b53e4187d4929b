"""Schedule templates: Python decides, CUDA computes, and only numbers cross."""
