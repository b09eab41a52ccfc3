"""Numbers under their keys, so that one question is put to runs and to printed tables alike."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from osnb import metrics


class Missing(LookupError):
    """A number that no run and no printed table gives; the message says which."""


class Same(Missing):
    """Numbers that no missing run would decide: of one network, or of seeds that differ in sign."""


@dataclass(frozen=True)
class Evidence:
    """Measures of many runs, rules and tasks, or of printed tables.

    Attributes:
        keys: n rows of text; the first column names the run or the printed table, the others say
            what the row is of, see `osnb.evidence.build.KEYS`.
        values: (n, 1 + R) float64 of each measure, rates in [0, 1]. Column 0 is the number
            itself, the others are its resamples; R = 0 in print. NaN is a dash.
        used: the rows read so far, by position.
    """

    keys: pd.DataFrame
    values: dict[str, np.ndarray]
    used: set[int] = field(default_factory=set, repr=False, compare=False)

    def __call__(self, measure: str, **where: str) -> np.ndarray:
        """(1 + R,) mean of a measure over the rows with these keys: over seeds, or splits.

        Raises:
            Missing: no row has these keys, or one of them no such number.
        """
        return self.rows(measure, **where).mean(axis=0)

    def __add__(self, other: "Evidence") -> "Evidence":
        """The rows of both; a measure that only one of them has is a dash in the other.

        Raises:
            ValueError: they have not as many resamples.
        """
        if self.resamples != other.resamples:
            raise ValueError(
                f"need equally many resamples; got {self.resamples} and {other.resamples}"
            )
        values = {
            measure: np.concatenate([side.column(measure) for side in (self, other)])
            for measure in self.values | other.values
        }
        return Evidence(pd.concat([self.keys, other.keys], ignore_index=True), values)

    @property
    def resamples(self) -> int:
        """R."""
        return next(iter(self.values.values())).shape[1] - 1

    def column(self, measure: str) -> np.ndarray:
        """(n, 1 + R) of a measure; NaN if there is no such one."""
        return self.values.get(measure, np.full((len(self.keys), 1 + self.resamples), np.nan))

    def rows(self, measure: str, **where: str) -> np.ndarray:
        """(m, 1 + R) of a measure, the rows that a call takes the mean of.

        Raises:
            Missing: as a call.
        """
        at = np.flatnonzero(self.fits(**where))
        numbers = self.column(measure)[at]
        if not len(numbers) or np.isnan(numbers).any():
            raise Missing(f"no {measure} of {', '.join(where.values())}")
        self.used.update(at.tolist())
        return numbers

    def names(self, key: str, **where: str) -> list[str]:
        """The values of a key among the rows with these keys, sorted.

        Raises:
            Missing: there are none.
        """
        values = sorted(self.keys.loc[self.fits(**where), key].unique()) if key in self.keys else []
        if not values:
            raise Missing(f"no {key} of {', '.join(where.values())}")
        return values

    def only(self, fits: pd.Series | np.ndarray) -> "Evidence":
        """The rows where `fits` (n,) is true, none of them used."""
        return self.at(self.keys[np.asarray(fits, bool)])

    def at(self, keys: pd.DataFrame) -> "Evidence":
        """The numbers under other keys: a row each, whose index is that of a row here."""
        rows = keys.index.to_numpy(int)
        values = {name: column[rows] for name, column in self.values.items()}
        return Evidence(keys.reset_index(drop=True), values)

    def unread(self) -> "Evidence":
        """The same numbers, none of them used."""
        return replace(self, used=set())

    def read(self) -> list[str]:
        """Names of the runs or tables that were used, sorted."""
        return sorted(self.keys.iloc[sorted(self.used), 0].unique())

    def points(self) -> pd.DataFrame:
        """The keys and, of each measure, the number itself."""
        return self.keys.assign(**{name: column[:, 0] for name, column in self.values.items()})

    def table(self, measure: str) -> pd.DataFrame:
        """The keys, a measure, and low and high, where 95 % of its resamples lie (NaN without)."""
        column = self.column(measure)
        ends = metrics.interval(column.T)[1:] if self.resamples else (np.nan, np.nan)
        return self.keys.assign(**{measure: column[:, 0]}, low=ends[0], high=ends[1])

    def fits(self, **where: str) -> np.ndarray:
        """(n,) whether a row has these keys; a key that the frame lacks fits none."""
        fits = np.ones(len(self.keys), bool)
        for key, value in where.items():
            fits &= (self.keys[key] == value).to_numpy() if key in self.keys else False
        return fits


def least(*numbers: np.ndarray) -> np.ndarray:
    """(1 + R,) the least of several numbers: above 0 if all are, so that "each" is decided.

    The least of several resampled numbers is lower on average than the least of the numbers, so
    its interval lies on the cautious side.
    """
    return np.min(numbers, axis=0)


def close(number: np.ndarray, stated: float | np.ndarray, *, within: float) -> np.ndarray:
    """(1 + R,) how much closer than `within` a number is to the stated one; in its unit."""
    return within - np.abs(number - stated)
