"""What the real suite is made of."""
