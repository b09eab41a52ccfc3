"""Claims that were decided, as lines for a terminal."""

import textwrap
from collections.abc import Iterator

import pandas as pd

from osnb.evidence import across
from osnb.evidence.across import UNDECIDED
from osnb.evidence.claims import SIZES

WIDTH = 100  # columns of a terminal
KINDS = ["holds / shows", "does not hold / show", UNDECIDED]
KIND = dict(zip(across.DECIDED, KINDS[:2], strict=True)) | {UNDECIDED: UNDECIDED}
KIND |= dict(zip(across.ILLUSTRATED, KINDS[:2], strict=True))


def report(decided: pd.DataFrame) -> Iterator[str]:
    """Each claim with its answers, size beside size, then how many there are of each answer.

    A size that decides nothing of a paper has no column there; it is counted in the end, with
    what would decide it.

    Args:
        decided: from `osnb.evidence.claims.decide`.

    Yields:
        Lines of at most `WIDTH` characters.
    """
    cells = [_cell(row) for row in decided.itertuples()]
    for paper, rows in decided.assign(cell=cells).groupby("paper", sort=False):
        says = rows.groupby("size", sort=False)["answer"].agg(lambda x: (x != UNDECIDED).any())
        shown = [size for size in says.index if says[size]] or [says.index[0]]
        yield from (paper, *_claims(rows, shown), "")
    yield from (*_counts(decided), "", *_remarks(decided))


def _claims(rows: pd.DataFrame, sizes: list[str]) -> Iterator[str]:
    """Each claim of a paper, what its number is, and a line for each scope."""
    widths = [max(len(s), *rows.loc[rows["size"] == s, "cell"].str.len()) for s in sizes]
    where = rows["where"].str.len().max()
    yield from _line(" " * where, sizes, widths)
    for _, claim in rows.groupby("id", sort=False):
        first = claim.iloc[0]
        yield f"{first['id']} ({first['section']}; {first['stated']})"
        text = f"{first['claim']} Number: {first['what']}."
        yield from textwrap.wrap(text, WIDTH, initial_indent="  ", subsequent_indent="  ")
        cells = claim.set_index(["where", "size"])["cell"]
        for scope in claim["where"].unique():
            beside = [cells.get((scope, size), "") for size in sizes]
            yield from _line(scope.ljust(where), beside, widths)


def _line(scope: str, cells: list[str], widths: list[int]) -> Iterator[str]:
    """The cells beside each other; those that do not fit go on below."""
    line = f"  {scope}"
    for cell, width in zip(cells, widths, strict=True):
        if len(line) + 1 + width > WIDTH:
            yield line.rstrip()
            line = " " * (2 + len(scope))
        line += f" {cell:{width}}"
    yield line.rstrip()


def _cell(row: tuple) -> str:
    """The answer, its number and its interval; or why there is none."""
    if pd.isna(row.number):
        return f"{row.answer}: {row.todo if row.todo and row.size == 'printed' else row.runs}"
    ends = "" if pd.isna(row.low) else f" [{_number(row.low)},{_number(row.high)}]"
    return f"{row.answer} {_number(row.number)}{ends}"


def _number(value: float) -> str:
    """With its sign, three digits behind the point; what they would make 0 has its size."""
    return f"{value:+.0e}" if 0 < abs(value) < 0.0005 else f"{value:+.3f}"


def _counts(decided: pd.DataFrame) -> Iterator[str]:
    """A table of how many answers there are of each kind, by paper and size."""
    kinds = decided.assign(kind=decided["answer"].map(KIND))
    counts = kinds.groupby(["paper", "size"], sort=False)["kind"].value_counts().unstack()
    counts = counts.reindex(columns=KINDS).fillna(0).astype(int)
    yield from counts.rename_axis(columns=None).reset_index().to_string(index=False).splitlines()


def _remarks(decided: pd.DataFrame) -> Iterator[str]:
    """What words and marks mean, and what would decide the rest."""
    yield from (f"{size}: {SIZES[size]}" for size in decided["size"].unique())
    yield "abstract, text: stated there; table: read off its numbers; law: what they must obey"
    if decided["low"].notna().any():
        yield "undecided beside a number: its interval includes 0, other classes may turn it"
    missing = decided[(decided["answer"] == UNDECIDED) & (decided["size"] != "printed")]
    for todo, rows in missing[missing["todo"] != ""].groupby("todo", sort=False):
        yield f"{', '.join(rows['size'].unique())}: {len(rows)} undecided"
        yield from (f"  {each}" for each in todo.split("; "))
