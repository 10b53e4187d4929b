"""A fault for each graph pass, and the checks that must find it."""
