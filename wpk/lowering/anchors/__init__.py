"""One file a kind of anchor: the shape of its output, and the problem that it and its epilogue make."""
