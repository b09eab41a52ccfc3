"""How easy and hard unknown classes are found, after Vaze et al. 2022, appendix.

Four ways, from what a data set says about its classes: a table of attributes (CUB), names that
spell out make, model, type and year (Stanford Cars), a hierarchy of labels (FGVC-Aircraft), and
distances in WordNet (ImageNet). Where the paper is silent, the choice is a named parameter.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd

from osnb.base.catalogue import Catalogue
from osnb.protocols import hierarchy


def similarity(attributes: pd.DataFrame) -> np.ndarray:
    """(C, C) cosine of every pair of classes, from a table with a class in each of C rows."""
    table = attributes.to_numpy(np.float64)
    unit = table / np.linalg.norm(table, axis=1, keepdims=True)
    return unit @ unit.T


def by_attributes(
    similar: np.ndarray, known: Sequence[int], *, sizes: tuple[int, int, int]
) -> pd.DataFrame:
    """Bins of the classes that are not known, by how much they resemble the closest known one.

    Args:
        similar: (C, C).
        known: positions of the known classes.
        sizes: number of easy, medium and hard classes; hard ones are the most alike, and the
            order of ties is that of the classes.

    Returns:
        One row for each of the C classes, by position: `bin` (known, easy, medium, hard),
        `paired` (position of the closest known class, -1 for known ones), `value` (their
        similarity, NaN for known ones).

    Raises:
        ValueError: the sizes do not add up to the classes that are not known.
    """
    known = np.asarray(known)
    others = np.setdiff1d(np.arange(len(similar)), known)
    if sum(sizes) != len(others):
        raise ValueError(f"need sizes that add up to {len(others)} classes; got {sizes}")
    near = similar[np.ix_(others, known)]
    table = pd.DataFrame({"bin": "known", "paired": -1, "value": np.nan}, range(len(similar)))
    table.loc[others, "paired"], table.loc[others, "value"] = known[near.argmax(1)], near.max(1)
    order = others[np.argsort(near.max(axis=1), kind="stable")]
    table.loc[order, "bin"] = np.repeat(["easy", "medium", "hard"], sizes)
    return table


def search(
    similar: np.ndarray, *, known: int, sizes: tuple[int, int, int], draws: int, seed: int, by: str
) -> pd.DataFrame:
    """`by_attributes` for the best of many random known sets, as for CUB.

    The authors draw a million sets and keep the most difficult one (appendix H.1). The seed and
    the measure of difficulty are not stated, so that all three are parameters.

    Args:
        similar: (C, C).
        known: number of known classes.
        sizes: as for `by_attributes`.
        draws: random known sets, >= 1; the first of equal ones is taken.
        seed: of the draws.
        by: one of SEPARATION.
    """
    rng, best = np.random.default_rng(seed), (-np.inf, pd.DataFrame())
    for _ in range(draws):
        chosen = np.sort(rng.permutation(len(similar))[:known])
        table = by_attributes(similar, chosen, sizes=sizes)
        parts = (table.loc[table["bin"] == name, "value"] for name in ("easy", "hard"))
        apart = SEPARATION[by](*parts)
        best = (apart, table) if apart > best[0] else best
    return best[1]


SEPARATION = Catalogue(
    gap=lambda easy, hard: hard.min() - easy.max(),
    mean=lambda easy, hard: hard.mean() - easy.mean(),
)


def by_name(names: Sequence[str], *, unknown: int) -> pd.DataFrame:
    """Known and unknown classes from names that read make, model, type and year (Stanford Cars).

    The year is the last word, the type the one before it, the rest is make (its first word) and
    model. Of two classes that differ in nothing but the year, the first is known and the second
    hard. Of the rest, two of one make and model: the first is known, the second medium. Of what
    is left of each make, the first is known and the others easy, until there are as many unknown
    classes as wanted; from then on all are known. The published list follows from this.

    Args:
        names: N classes, those of a make beside each other.
        unknown: number of unknown classes.

    Returns:
        One row a class: `bin`, and `order` of the known ones (-1 for others): those of makes with
        more to come, the last of each make, then those with a medium and with a hard partner.
    """
    words = [name.split() for name in names]
    bins, left = {}, range(len(names))
    hard = _pairs(left, [w[:-1] for w in words])
    medium = _pairs([i for i in left if i not in {*hard, *hard.values()}], [w[:-2] for w in words])
    bins |= dict.fromkeys(hard.values(), "hard") | dict.fromkeys(medium.values(), "medium")
    left = [i for i in left if i not in {*hard, *medium, *bins}]
    first, last = [], []
    for make in dict.fromkeys(words[i][0] for i in left):
        rest = [i for i in left if words[i][0] == make]
        easy = rest[1 : 1 + max(0, unknown - len(bins))]
        bins |= dict.fromkeys(easy, "easy")
        first += [i for i in rest[:-1] if i not in easy]
        last += [i for i in rest[-1:] if i not in easy]
    order = {i: n for n, i in enumerate([*first, *last, *medium, *hard])}
    rows = [(bins.get(i, "known"), order.get(i, -1)) for i in range(len(names))]
    return pd.DataFrame(rows, columns=["bin", "order"])


def _pairs(left: Iterable[int], keys: Sequence[list[str]]) -> dict[int, int]:
    """First and second of those that have the same key."""
    alike: dict[tuple[str, ...], list[int]] = {}
    for i in left:
        alike.setdefault(tuple(keys[i]), []).append(i)
    return {group[0]: group[1] for group in alike.values() if len(group) > 1}


def by_levels(levels: pd.DataFrame, known: Collection[int]) -> pd.DataFrame:
    """Bins from a hierarchy of labels, given the known classes (FGVC-Aircraft).

    A class is hard if one of its family is known, else medium if one of its manufacturer is,
    else easy. How the known ones were chosen is not published.

    Args:
        levels: one row a class, columns family and manufacturer.
        known: positions of the known classes.

    Returns:
        One row a class: `bin`, and `paired`, the positions of the known classes nearest to it.
    """
    rows = []
    families, makers = levels["family"].tolist(), levels["manufacturer"].tolist()
    for i in range(len(levels)):
        near = [k for k in sorted(known) if families[k] == families[i]]
        far = [k for k in sorted(known) if makers[k] == makers[i]]
        name = "hard" if near else "medium" if far else "easy"
        rows.append(("known", []) if i in known else (name, near or far))
    return pd.DataFrame(rows, columns=["bin", "paired"])


def total_distances(
    wnids: Sequence[str], *, known: Sequence[str], among: Collection[str] | None
) -> np.ndarray:
    """(N,) sum of each synset's path lengths to all known classes, in edges.

    The paper's tree is that of Ridnik et al. 2021: of several hypernyms the last listed, and only
    synsets of `among`; its roots are joined one edge apart above a depth that counts them.

    Args:
        wnids: N synsets of `among`.
        known: the known classes; those that are not in `among` are left out.
        among: the data set's synsets; for the paper, the 11,221 of ImageNet-21K-P. None: the
            shortest paths over all hypernyms, in the place of a tree's.
    """
    if among is None:
        return np.array([sum(hierarchy.shortest(w, k) for k in known) for w in wnids])
    among = frozenset(among)
    paths = [_path(wnid, among) for wnid in known if wnid in among]
    above = Counter(wnid for path in paths for wnid in path)
    depths = sum(map(len, paths))
    totals = []
    for path in (_path(wnid, among) for wnid in wnids):
        elsewhere = len(paths) - above[path[-1]]
        shared = 2 * sum(above[wnid] for wnid in path)
        totals.append(len(paths) * len(path) + depths - shared + elsewhere)
    return np.array(totals)


def _path(wnid: str, among: frozenset[str]) -> list[str]:
    """From a synset to its root, both included."""
    nodes = [wnid]
    while above := hierarchy.parents(nodes[-1]):
        nodes.append(above[-1])
    return [node for node in nodes if node in among]


def by_distance(
    candidates: Sequence[str],
    *,
    known: Sequence[str],
    among: Collection[str] | None,
    size: int,
    hard: str = "largest",
) -> pd.DataFrame:
    """Easy and hard classes by `total_distances`, as for ImageNet.

    In the published lists easy classes have the least total distance and hard ones the largest,
    which deep synsets have: they follow from that but for a few in a hundred.

    Args:
        candidates: synsets of `among`; known ones among them are left out.
        known: the known classes.
        among: as for `total_distances`.
        size: number of easy classes, and of hard ones.
        hard: whether hard ones are those of the "largest" distance or of the "smallest".

    Returns:
        One row a class, wnid, bin and distance: easy ones, then hard ones, each from the most
        extreme distance on; ties are in the order of the wnids.

    Raises:
        ValueError: `hard` is neither, or a class would be easy and hard: there are too few, or too
            many of one distance.
    """
    if hard not in ("largest", "smallest"):
        raise ValueError(f"hard classes have the largest or smallest distance; got {hard!r}")
    names = sorted(set(candidates) - set(known))
    table = pd.DataFrame({"wnid": names})
    table["distance"] = total_distances(names, known=known, among=among)
    up, down = (
        table.sort_values("distance", ascending=ascending, kind="stable").head(size)
        for ascending in (True, False)
    )
    easy, hardest = (up, down) if hard == "largest" else (down, up)
    both = pd.concat([easy.assign(bin="easy"), hardest.assign(bin="hard")], ignore_index=True)
    if twice := both["wnid"].duplicated().sum():
        raise ValueError(
            f"need {2 * size} classes that are not known, of distances that tell them apart; "
            f"got {len(names)}, and {twice} would be easy and hard: ask for fewer"
        )
    return both[["wnid", "bin", "distance"]]


def relations(wnids: Iterable[str], known: Collection[str]) -> list[str]:
    """For each synset "ancestor" or "descendant" of a known class, by all hypernyms, or ""."""
    known = set(known)
    above = {wnid for member in known for wnid in hierarchy.ancestors(member)}
    below = lambda wnid: bool(known & set(hierarchy.ancestors(wnid)))  # noqa: E731
    return ["ancestor" if w in above else "descendant" if below(w) else "" for w in wnids]


def nearest(rows: pd.DataFrame) -> pd.DataFrame:
    """The known class that is closest to each unknown one, by the steps of `hierarchy.shortest`.

    Args:
        rows: of a protocol, columns wnid, name, role and bin.

    Returns:
        One row for each unknown class, in their order: wnid, name, bin, closest and closest_name
        (of several, the first) and steps (edges, >= 1).
    """
    known, table = rows[rows["role"] == "known"], rows[rows["role"] == "unknown"]
    steps = [[hierarchy.shortest(w, k) for k in known["wnid"]] for w in table["wnid"]]
    at = np.array(steps).reshape(len(table), len(known)).argmin(axis=1)
    closest = known.iloc[at][["wnid", "name"]].set_axis(["closest", "closest_name"], axis=1)
    table = table[["wnid", "name", "bin"]].reset_index(drop=True)
    table = table.join(closest.reset_index(drop=True))
    return table.assign(steps=[min(row) for row in steps])
