"""What every pass uses: the contract, rules, edits, questions about a graph, operators as functions."""
