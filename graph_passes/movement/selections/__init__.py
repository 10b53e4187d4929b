"""What operators pick out: the places, the values, and the forms in which kernels give them."""
