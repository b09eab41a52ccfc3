"""Scores tables of many runs to numbers with intervals, held against what the papers print."""
