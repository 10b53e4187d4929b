"""What the papers say and wpk does not use, to compare with."""
