"""The rows of ``benchmarks/evidence.py``: each measures one claim and says whether it holds."""
