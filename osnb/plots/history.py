"""A run while it trains: loss and what `validate` gave, by epoch."""

import pandas as pd
from matplotlib.axes import Axes

from osnb.plots.described import Figure, panels
from osnb.plots.style import label_outside, laid_out, need, note

MEASURES = {  # colour, line style, label
    "gamma_plus": ("#1f77b4", "-", "γ⁺, known samples"),
    "gamma_minus": ("#d9822b", (0, (5, 1.5)), "γ⁻, negative samples"),
    "accuracy": ("#222222", (0, (7, 1.5, 1.5, 1.5)), "accuracy"),
}
NO_MEASURE = {"epoch", "learning_rate", "loss", "best", "gamma", "stage"}


@laid_out
def training(history: pd.DataFrame) -> Figure:
    """Loss (left) and the measures of `validate` (right) over the epochs so far.

    Args:
        history: from `train.fit`, or history.parquet while it runs: columns epoch (from 1), loss
            in nats, and measures in [0, 1]; a dot marks the epoch with the largest `best`.
    """
    need(history, ["epoch", "loss"])
    figure, (axes,) = panels(1, 2, width=4, height=2.6)
    _draw(axes[0], history, ["loss"])
    rates = history.max().between(0, 1)  # norms and logits would leave the panel
    _draw(axes[1], history, [name for name in history if name not in NO_MEASURE and rates[name]])
    axes[0].set_ylabel("mean loss, in nats")
    axes[1].set(ylabel="on validation images", ylim=(0, 1.02))
    for ax in axes:
        ax.set_xlabel("epoch")
        ax.xaxis.get_major_locator().set_params(integer=True)
    last = history.iloc[-1]
    note(figure, f"epoch {last['epoch']:.0f}: loss {last['loss']:.3f}")
    if axes[1].lines:
        label_outside(figure, axes[1:])
    return figure


def _draw(ax: Axes, history: pd.DataFrame, names: list[str]) -> None:
    best = history["best"].idxmax() if "best" in history else None
    for name in names:
        color, line, label = MEASURES.get(name, ("0.4", "-", name))
        ax.plot(history["epoch"], history[name], color=color, linestyle=line, label=label, lw=1.6)
        if best is not None:
            at = history.loc[best]
            ax.plot(at["epoch"], at[name], "o", color=color, markersize=5)
