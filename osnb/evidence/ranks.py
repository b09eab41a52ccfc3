"""Do two rankings agree? Spearman's rho and Kendall's W, of a sample and of its resamples."""

import numpy as np
import pandas as pd

FEW = 3  # two methods have one of two orders


def spearman(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(1 + R,) rank correlation over n methods of (n, 1 + R) each; ties share their mean rank.

    NaN with fewer than three methods, with a NaN among them, or where one side does not vary.
    """
    x, y = (_ranks(each) - (len(each) + 1) / 2 for each in (one, other))
    below = np.sqrt((x**2).sum(axis=0) * (y**2).sum(axis=0))
    fits = (below > 0) & (len(x) >= FEW)
    return np.divide((x * y).sum(axis=0), below, out=np.full(x.shape[1], np.nan), where=fits)


def kendall_w(values: np.ndarray) -> np.ndarray:
    """(1 + R,) concordance of m tasks about n methods: 1 if all rank alike, near 1 / m by chance.

    With R_i the sum of method i's ranks and T the sum of t^3 - t over the ties of a task,

        W = 12 sum_i (R_i - m (n + 1) / 2)^2 / (m^2 (n^3 - n) - m sum T)

    Without ties the mean of Spearman's rho over all pairs of tasks is (m W - 1) / (m - 1).

    Args:
        values: (m, n, 1 + R) of any unit, m >= 2. A resample with a NaN gives NaN.
    """
    ranks = np.array([_ranks(each) for each in values])
    m, n, _ = ranks.shape
    spread = ((ranks.sum(axis=0) - m * (n + 1) / 2) ** 2).sum(axis=0)
    below = m * ((ranks - (n + 1) / 2) ** 2).sum(axis=(0, 1))  # (m (n^3 - n) - sum T) m / 12
    return np.divide(spread, below, out=np.full(len(below), np.nan), where=below > 0)


def _ranks(values: np.ndarray) -> np.ndarray:
    """(n, 1 + R) ranks from 1 within each column, NaN throughout one with a NaN."""
    ranks = pd.DataFrame(values).rank().to_numpy()
    return np.where(np.isnan(values).any(axis=0), np.nan, ranks)
