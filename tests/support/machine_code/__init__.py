"""What the compiler made of a kernel."""
