"""One negative sample's gradient under three losses: the loss explorer's twin."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from osnb.plots.described import Figure, panels
from osnb.plots.style import LOSSES, laid_out, look, need, present

LOSS_NAMES = {"softmax": "S", "background": "BG", "entropic": "EOS"}
HATCHES = {"softmax": "", "background": "///", "entropic": "..."}


def gradient_points(logits: Sequence[float], *, background: float, weight: float) -> pd.DataFrame:
    """The derivative of S, BG and EOS by each logit of one negative sample.

    With s the softmax of the logits, for BG of those of the K known classes and the background
    (equations 3, 4 and 5 of Palechor et al. 2023):

        S:    dJ/dz_c = 0
        BG:   dJ/dz_c = weight (s_c - [c is the background])
        EOS:  dJ/dz_c = weight (s_c - 1 / K)

    Args:
        logits: (K,) of the known classes, in nats, K >= 2.
        background: the background's logit, in nats, which only BG has.
        weight: price of a negative, > 0: BG's weight of the background class, EOS's weight.

    Returns:
        loss, output (class 1, ..., background), logit, probability, gradient; a row for each
        output of each loss.

    Raises:
        ValueError: fewer than two logits, one that is not finite, or a weight that is not > 0.
    """
    known = np.asarray(logits, np.float64)
    if known.ndim != 1 or len(known) < 2 or not np.isfinite([*known, background]).all():
        raise ValueError(f"need two or more finite logits; got {logits} and {background}")
    if not (np.isfinite(weight) and weight > 0):
        raise ValueError(f"need a finite weight above 0; got {weight}")
    K, every = len(known), np.r_[known, background]
    parts = {  # logits, and what their softmax should be
        "softmax": (known, _softmax(known), 0.0),
        "background": (every, np.arange(K + 1) == K, weight),
        "entropic": (known, np.full(K, 1 / K), weight),
    }
    names = [*(f"class {c}" for c in range(1, K + 1)), "background"]
    frames = []
    for loss, (z, target, price) in parts.items():
        s = _softmax(z)
        columns = {"logit": z, "probability": s, "gradient": price * (s - target)}
        frames.append(pd.DataFrame({"loss": loss, "output": names[: len(z)]} | columns))
    return pd.concat(frames, ignore_index=True)


def _softmax(z: np.ndarray) -> np.ndarray:
    shifted = np.exp(z - z.max())
    return shifted / shifted.sum()


@laid_out
def loss_gradients(points: pd.DataFrame) -> Figure:
    """The gradients as bars, a panel for each loss, on one scale.

    A step of training moves each logit against its bar.

    Args:
        points: as from `gradient_points`.

    Raises:
        ValueError: a column is missing.
    """
    need(points, ["loss", "output", "logit", "gradient"])
    losses = present(points["loss"], list(LOSSES))
    figure, axes = panels(1, len(losses), width=3.2, height=2.9, sharey=True)
    limit = 1.25 * max(0.4, points["gradient"].abs().max())
    for ax, loss in zip(axes[0], losses, strict=True):
        part = points[points["loss"] == loss]
        color, label = (look(LOSSES, loss)[key] for key in ("color", "label"))
        places, heights = range(len(part)), part["gradient"]
        ax.bar(places, heights, color=color, hatch=HATCHES.get(loss, ""), edgecolor="white")
        for place, height in zip(places, heights, strict=True):
            side = (
                {"va": "bottom", "ha": "center"} if height >= 0 else {"va": "top", "ha": "center"}
            )
            by = {"xytext": (0, 2 if height >= 0 else -3), "textcoords": "offset points"}
            ax.annotate(f"{height:+.2f}", (place, height), fontsize=8, **side, **by)
        names = [f"{o}\n{z:+.2f}" for o, z in zip(part["output"], part["logit"], strict=True)]
        ax.set_xticks(places, names, fontsize=8)
        ax.axhline(0, color="0.3", linewidth=0.8)
        ax.set(title=label, xlabel="output and its logit, in nats", ylim=(-limit, limit))
        ax.grid(visible=False, axis="x")
    axes[0, 0].set_ylabel("derivative of the loss")
    return figure
