"""What papers say and wpk does not do, as code, so that their numbers can be looked at."""
