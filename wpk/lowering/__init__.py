"""From the optimized graph to operators, problems and values in memory."""
