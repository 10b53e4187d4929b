"""Products beside poolings, activations and each other become fewer or cheaper."""
