"""Convolutions, poolings and other windows without a kernel become ones that have one."""
