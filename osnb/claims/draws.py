"""Draws of a bootstrap that are shared by all that is compared."""

import zlib

import numpy as np
import pandas as pd

from osnb import metrics


def drawn_weights(
    rows: pd.DataFrame, name: str, unit: str, seed: int, resamples: int
) -> np.ndarray:
    """(1 + R, N) copies of each sample that a bootstrap draws.

    Args:
        rows: N samples of a scores table.
        name: of the draw: each has a stream of its own, whichever others there are, so that two
            methods that are compared on the same samples share their draws.
        unit: column that is drawn from: "class" or "sample".
        seed: of all draws.
        resamples: R; 0 gives the sample alone.
    """
    if not resamples:
        return np.ones((1, len(rows)), np.uint16)
    stream = np.random.SeedSequence([seed, zlib.crc32(name.encode())]).generate_state(1)[0]
    units = rows[unit].to_numpy()
    return metrics.bootstrap_weights(units, seed=int(stream), resamples=resamples)
