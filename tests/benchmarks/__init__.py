"""Ours beside the alternatives, as ratios of one interleaved run: the one room with a clock."""
