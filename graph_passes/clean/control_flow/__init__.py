"""If, Loop and Scan become the nodes of their bodies, or loops that can be executed."""
