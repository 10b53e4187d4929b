"""Faults planted in headers and graph passes, which checks must find."""
