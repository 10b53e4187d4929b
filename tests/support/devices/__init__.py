"""Stand-ins for GPUs, arrays in their memory, and processes that tests start."""
