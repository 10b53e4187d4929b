"""What to do where a package is missing that a GPU needs."""

INSTALL_GPU_PACKAGES = (
    "run scripts/environment gpu in a checkout of wpk (it needs no CUDA toolkit); with a toolkit: "
    "python -m pip install pycuda cuda-bindings nvidia-cudnn-cu13 nvidia-cudnn-frontend"
)
"""A fix. No extra of wpk is named: an installed wheel does not say where it came from."""
