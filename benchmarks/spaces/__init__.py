"""Schedule spaces of networks' problems: what of them is recorded, how, and what a record says."""
