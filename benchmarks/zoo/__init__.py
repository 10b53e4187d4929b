"""A zoo: networks of full size, one a family, and others that a seed draws from timm's list."""
