"""The risk-coverage chooser: two costs to state, and the threshold that is cheapest."""

import pandas as pd

from osnb import plots
from osnb.widgets.explorer import Explorer, lowest, slider

STEP, MOST = 0.1, 10.0


class CostSliders(Explorer):
    """What `cost_sliders` returns.

    Attributes:
        wrong: FloatSlider, cost of a wrong acceptance.
        rejection: FloatSlider, cost of a rejection.
        figure: `plots.least_cost` at the two.
    """

    def __init__(self, samples: pd.DataFrame, *, wrong: float, rejection: float) -> None:
        self._points = plots.coverage_points(samples)
        self.show(wrong, rejection)
        self.wrong = slider(wrong, lowest(wrong, STEP), MOST, STEP, "cost of a wrong acceptance")
        self.rejection = slider(
            rejection, lowest(rejection, STEP), MOST, STEP, "cost of a rejection"
        )
        super().__init__(
            [self.wrong, self.rejection],
            lambda: self.show(self.wrong.value, self.rejection.value),
        )

    def show(self, wrong: float, rejection: float) -> None:
        """Redraw the picture and rewrite the sentence for these costs."""
        costs = {"wrong": wrong, "rejection": rejection}
        best = plots.cost_table(self._points, **costs)
        words = []
        for panel, rows in best.groupby("panel", sort=False):
            row = rows.loc[rows["cost"].idxmin()]
            words.append(
                f"{panel}: cheapest is {row['method']}, cost {row['cost']:.3f} a sample, accepts "
                f"{row['coverage']:.3f} from {row['threshold']:.3g} on, risk {row['risk']:.3f}"
            )
        self.put(plots.least_cost(self._points, **costs), "<br>".join(words))


def cost_sliders(samples: pd.DataFrame, *, wrong: float, rejection: float) -> CostSliders:
    """The costs of a wrong acceptance and of a rejection to move, and each method's cheapest point.

    The static twin, for readers without a kernel, is `plots.least_cost` of
    `plots.coverage_points`.

    Args:
        samples: columns panel, method, kind ("" where accepting is right) and score.
        wrong: where the first slider starts, any unit, >= 0.
        rejection: where the second starts, same unit, >= 0.

    Raises:
        ValueError: a column is missing, a score is NaN, or a cost is not finite or below 0.
    """
    return CostSliders(samples, wrong=wrong, rejection=rejection)
