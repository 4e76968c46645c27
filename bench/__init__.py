"""Measurements as ratios: our way and the same by hand, in turn, in one run."""
