"""What a plan says, how it is put together, and the files it lies in."""
