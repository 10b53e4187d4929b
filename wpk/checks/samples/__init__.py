"""What a few samples of a batch say of all of them."""
