"""One file a family of operators: moves that add a node, or a few, to a model under construction."""
