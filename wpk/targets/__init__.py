"""The GPUs that wpk compiles for, and what the performance models know of them."""
