"""Tables 2, 5 and 6 of Kim et al. 2021: results, the sets and the pools that they are of."""

from collections.abc import Collection
from functools import partial
from types import MappingProxyType

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.base import workbook
from osnb.evidence import tables
from osnb.evidence.build import KEYS, OF_RUN, Evidence
from osnb.evidence.frames import need
from osnb.evidence.names import ALL, NOISE, TASKS, UNKNOWN, WRONG, placed, printed_sources

# measures, how they are printed, and tasks
MEASURES = {"ACC": "accuracy", "AURC_x1000": "aurc", "AUROC": "auroc", "FPR_95TPR": "fpr95"}
UNITS = {"accuracy": 100, "aurc": 1000, "auroc": 100, "fpr95": 100}  # printed per rate
ASKED = {"classification": WRONG, "misclassification_detection": WRONG}
ASKED |= {"near_ood_detection": "near", "far_ood_detection": "far", "unknown_detection": UNKNOWN}
TABLES = {"cifar": 5, "imagenet": 6}
IN_TABLE_2 = {"cifar": "CIFAR", "imagenet": "ImageNet"}
EPOCHS = {"cifar": 200, "imagenet": 90}  # of print, by the authors' code
DIVIDED = "train and validation"
TRAINED_ON = ("CIFAR-40", "ImageNet-200", "External ImageNet-394")  # of all training images
HEADS = {"accuracy": "ACC, %", "aurc": "AURC x 1000", "e_aurc": "E-AURC x 1000"}
HEADS |= {"auroc": "AUROC, %", "fpr95": "FPR95, %"}
SOFTMAX = ["printed", "kind", "class", "known", "softmax", "runs"]
CONCENTRATION = "concentration"  # on one known class, of the mean softmax of a far set
TRAINING = ["benchmark", "split", "seed", "network", "backbone", "method", "regime"]
SETTING = ["place", "task", "source", "metric"]  # of one number of a method
# AUROC from which total variation alone solves a cell: nine of ten pairs are told apart unseen. In
# print Baseline is below it in every far cell
SOLVED = 0.9
CLASSES = {"DTD": 47}  # of a far set of which there may be fewer at hand
OF_VARIATION = ["size", "benchmark", "split", "task", "source", "images", "auroc", "file"]


def _called(name: str, other: str) -> dict[str, dict[str, str]]:
    """By benchmark, one name of each set by another, of those that have both."""
    rows = tables.texts("kim2021", "sets")
    groups = rows[rows[other] != ""].groupby("place")
    return {place: dict(zip(part[name], part[other], strict=True)) for place, part in groups}


SETS = _called("source", "printed")  # as Tables 5 and 6 call them, by their names in evidence
# what stands in their places, by size
STANDS = {"mini": _called("printed", "miniature"), "tiny": _called("printed", "tiny")}


def results() -> pd.DataFrame:
    """Tables 5 and 6, a row per number.

    Returns:
        place, printed (the method), task, source (the set) and metric; mean and std, as printed;
        value and paper_sd, the same as rates; twice ("yes" where another method has the same mean
        and the same deviation over five trainings, else "").
    """
    parts = {place: tables.published("kim2021", f"table{n}") for place, n in TABLES.items()}
    rows = pd.concat(parts, names=["place"]).reset_index(level=0)
    rows = rows.rename(columns={"method": "printed", "dataset": "source"})
    rows = rows.replace({"metric": MEASURES, "task": ASKED})
    unit = rows["metric"].map(UNITS)
    rows = rows.assign(value=rows["mean"] / unit, paper_sd=rows["std"] / unit)
    twice = rows.duplicated([*SETTING, "mean", "std"], keep=False) & rows["std"].notna()
    twice &= rows["metric"] != "accuracy"  # ODIN has Baseline's: it is the same network
    return rows.assign(twice=np.where(twice, "yes", ""))


def as_printed(compared: pd.DataFrame) -> pd.DataFrame:
    """A comparison of rates in the units of print: percent, AURC times 1000, said in `metric`."""
    ends = ["paper", "paper_sd", "ours", "low", "high", "sd_seeds", "difference"]
    unit = compared["metric"].map({"aurc": 1000, "e_aurc": 1000}).fillna(100)
    numbers = compared[ends].mul(unit, axis=0)
    return compared.assign(**numbers, metric=compared["metric"].map(HEADS))


def whole_splits(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of those splits that have every method of their benchmark.

    A mean over other known classes than another method's would compare classes, not methods. Of a
    method with trainings of several lengths, or networks, those stay that most methods have too; of
    equally many, the longest. Of a training in two precisions the one in float32 stays. Where no
    split has every method, those stay that have the most, and the same ones.

    Args:
        runs: from `tables.collect`.
    """
    alike = runs.groupby(["benchmark", "epochs", "network"])["method"].transform("nunique")
    rank = alike + runs["epochs"] / 1e6
    longest = rank.groupby([runs["benchmark"], runs["method"], runs["regime"]]).transform("max")
    runs = runs[rank == longest].sort_values("precision", kind="stable")
    runs = runs.drop_duplicates([x for x in TRAINING if x in runs], keep="last").sort_index()
    methods = runs.groupby(["benchmark", "split"])["method"].agg(frozenset)
    most = methods.groupby("benchmark").agg(partial(max, key=len))  # the first of equally many
    kept = methods[methods == most.reindex(methods.index, level="benchmark")].index
    return runs[pd.MultiIndex.from_frame(runs[["benchmark", "split"]]).isin(kept)]


def shortened(runs: pd.DataFrame) -> dict[str, str]:
    """By place, how long runs of size paper were trained where print's were trained for longer.

    Args:
        runs: from `names.in_print`.
    """
    least = runs[runs["size"] == "paper"].groupby("place")["epochs"].min()
    return {at: f"epochs {n} of {EPOCHS[at]}" for at, n in least.items() if n < EPOCHS[at]}


def lacking(runs: pd.DataFrame) -> dict[str, dict[str, str]]:
    """By place, what far sets of photographs, and the pool of all, lack of print's.

    Args:
        runs: from `names.in_print`; of the miniature nothing is said, see `STANDS`.

    Returns:
        By place and set, as printed, what is there in its place.
    """
    found = {}
    for place, part in runs[runs["size"] != "mini"].groupby("place"):
        run, sets = part.iloc[0], SETS[place]
        parts = TASKS["unified"].parts(tables.read(run["path"]), run)
        far = [(sets.get(x.source, x.source), x.rows["class"]) for x in parts if x.task == "far"]
        classes = {name: of.nunique() for name, of in far}
        few = {name: n for name, n in classes.items() if n < CLASSES.get(name, n)}
        found[place] = {x: f"{n} of {CLASSES[x]} classes of {x}" for x, n in few.items()}
        asked = results().query("place == @place and task == 'far'")["source"].unique()
        if gone := [name for name in asked if name not in classes]:
            found[place][sets[ALL]] = f"without {', '.join(gone)}"
    return {place: sets for place, sets in found.items() if sets}


def in_bfloat16(runs: pd.DataFrame) -> set[tuple[str, str]]:
    """Place and printed name, in lower case, of methods with a run of size paper in bfloat16.

    Args:
        runs: from `names.in_print`.
    """
    methods = tables.texts("kim2021", "rows")[["method", "printed"]]
    rows = runs.query("size == 'paper' and precision == 'bfloat16'").merge(methods, on="method")
    return set(zip(rows["place"], rows["printed"], strict=True))


def labelled(
    table: pd.DataFrame,
    short: dict[str, str],
    bfloat16: Collection[tuple[str, str]] = (),
    lacking: dict[str, dict[str, str]] = MappingProxyType({}),
) -> pd.DataFrame:
    """A table, with columns for what differs from print, if something does.

    They are `trained`, and `far sets` for what these lack. A row that was not run has nothing
    there.

    Args:
        table: has the column place or where, as findings have it; printed, if a row is of one
            method; both in any case.
        short: from `shortened`.
        bfloat16: from `in_bfloat16`.
        lacking: from `lacking`.
    """
    places = table["place" if "place" in table else "where"].str.lower()
    sets = places.map(lambda place: ", ".join(lacking.get(place, {}).values()))
    trained = places.map(lambda place: short.get(place, ""))
    names = table.get("printed", places).astype(str).str.lower()
    coarse = np.array([row in bfloat16 for row in zip(places, names, strict=True)], bool)
    trained = trained.mask(coarse, (trained + ", bfloat16").str.removeprefix(", "))
    told = pd.DataFrame({"trained": trained, "far sets": sets})
    told = told.mask(table.filter(["run", "ours"]).eq("not run").any(axis=1), "")
    return table.assign(**told.loc[:, told.any()])


def images(table: str) -> pd.DataFrame:
    """Printed numbers of images, a row a set and part.

    Where all training images of the known or external classes are divided, the two parts are one.

    Args:
        table: table2, or readme, that of the authors' repository.

    Returns:
        benchmark, dataset, part (train, validation, test, or `DIVIDED`) and n.
    """
    key, parts = ["benchmark", "dataset"], ["train", "validation", "test"]
    rows = tables.published("kim2021", table).set_index(key)[parts].astype(float)
    divided = rows.index.get_level_values("dataset").isin(TRAINED_ON)
    rows[DIVIDED] = (rows["train"] + rows["validation"]).where(divided)
    rows.loc[divided, ["train", "validation"]] = np.nan
    return rows.rename_axis(columns="part").stack().dropna().reset_index(name="n")


def kinds(scores: pd.DataFrame) -> np.ndarray:
    """(N,) kind of each row of a scores table: right, wrong, near, far or noise."""
    kind = np.where(scores["pred"] == scores["label"], "right", "wrong")
    kind = np.where(scores["role"] == "known", kind, scores["group"])
    return np.where(scores["source"] == NOISE, "noise", kind)


def pools(runs: pd.DataFrame) -> pd.DataFrame:
    """How many samples are pooled for unknown detection, beside Table 2.

    Args:
        runs: from `names.in_print`.

    Returns:
        One row per benchmark that was run: place, fewest and most (test samples, known and
        unknown, of its runs, noise only where Table 2 has some), paper (all test images of Table
        2), and alike (whether every run has that many).
    """
    test = tables.published("kim2021", "table2").set_index("dataset").groupby("benchmark")["test"]
    rows = []
    for place, part in runs.groupby("place"):
        there, sizes = test.get_group(IN_TABLE_2[place]), []
        for scores in map(tables.read, part["path"]):
            pooled = scores["role"].isin(["known", "unknown"])
            pooled &= ("Gaussian" in there) | (scores["source"] != NOISE)
            sizes.append(int(pooled.sum()))
        paper = int(there.sum())
        rows.append((place, min(sizes), max(sizes), paper, {*sizes} == {paper}))
    return pd.DataFrame(rows, columns=["place", "fewest", "most", "paper", "alike"])


def beside(compared: pd.DataFrame, pools: pd.DataFrame) -> pd.DataFrame:
    """A comparison without the differences of unified AURCs whose pools are not the paper's.

    Errors are counted by images, so two pools of other sizes have other AURCs for one and the same
    ranking.

    Args:
        compared: from `tables.compare`, with a column place (in any case); its column task says
            which rows are of unknown detection, and without one all are.
        pools: from `pools`.
    """
    alike = set(pools.loc[pools["alike"], "place"])
    other = ~compared["place"].str.lower().isin(alike)
    other &= compared["task"] == UNKNOWN if "task" in compared else True
    gone = {"difference": compared["difference"].mask(other)}
    return compared.assign(**gone, within=compared["within"].mask(other, ""))


def named(
    rows: pd.DataFrame, *, size: str, lacking: dict[str, dict[str, str]] = MappingProxyType({})
) -> pd.DataFrame:
    """Rows with the paper's names of methods and sets; `own` is what stands in a set's place.

    Args:
        rows: columns place, printed (a method in lower case) and source.
        size: of the runs; mini and tiny have stand-ins.
        lacking: from `lacking`, of other sizes.
    """
    called = {name.lower(): name for name in [*results()["printed"].unique(), "Mahalanobis"]}
    sets = [SETS[at].get(x, x) for at, x in zip(rows["place"], rows["source"], strict=True)]
    places = {*rows["place"]}
    stands = {x: STANDS.get(size, {}).get(x, {}) | lacking.get(x, {}) for x in places}
    own = [stands[at].get(x, x) for at, x in zip(rows["place"], sets, strict=True)]
    return rows.assign(printed=rows["printed"].map(called), source=sets, own=own)


def variation_alone(images: pd.DataFrame) -> pd.DataFrame:
    """How well a score that knows nothing tells each set of unknown test images: total variation.

    Of two images it accepts the one with the smaller mean step from a pixel to its neighbours.

    Args:
        images: one row per test image: size, benchmark, split, role, group, source, variation.

    Returns:
        size, benchmark, split, task (near or far), source (as in evidence), images (source of the
        unknown ones), known and unknown (how many), auroc.
    """
    rows = []
    for keys, part in images.groupby(["size", "benchmark", "split"], sort=False):
        where = dict(zip(("size", "benchmark", "split"), keys, strict=True))
        known = part.loc[part["role"] == "known", "variation"].to_numpy()
        for task, source, other, _ in TASKS["unified"].parts(part, where):
            if task in ("near", "far"):
                of = {"task": task, "source": source, "images": other["source"].iloc[0]}
                of |= {"known": len(known), "unknown": len(other)}
                auroc = metrics.auroc(-known, -other["variation"].to_numpy())
                rows.append(where | of | {"auroc": auroc})
    return pd.DataFrame(rows)


def variation(size: str) -> pd.DataFrame:
    """What notebook 30 has found of total variation for runs of a size, a row a set.

    Returns:
        place, task, source (as in print), images, variation (the mean AUROC over splits, or one
        minus it if that is larger), rougher (known or unknown images) and solved ("solved" from
        `SOLVED` on, else nothing); `.attrs["inputs"]`, sha256 of each file, by its name below
        figures/.
    """
    name, files = "30_kim_benchmark/*/total_variation.csv", {}
    for base in (workbook.root() / "figures", workbook.out() / "figures", workbook.out() / "runs"):
        files |= {file.relative_to(base).as_posix(): file for file in sorted(base.glob(name))}
    found = [pd.read_csv(file).assign(file=key) for key, file in files.items()]
    rows = pd.concat(found or [pd.DataFrame(columns=OF_VARIATION)], ignore_index=True)
    rows = placed(rows[rows["size"] == size], "kim2021")
    names = zip(rows["place"], rows["source"], strict=True)
    rows = rows.assign(source=[SETS[place].get(x, x) for place, x in names])
    by = ["place", "task", "source", "images"]
    mean = rows.groupby(by, sort=False)["auroc"].mean().reset_index()
    least = mean.pop("auroc")
    mean = mean.assign(variation=np.maximum(least, 1 - least))
    mean["rougher"] = np.where(least >= 0.5, "unknown", "known")
    mean["solved"] = np.where(mean["variation"] >= SOLVED, "solved", "")
    mean.attrs["inputs"] = {key: workbook.file_hash(files[key]) for key in rows["file"].unique()}
    return mean


def mean_softmax(means: pd.DataFrame, classes: pd.DataFrame, *, at_most: int) -> pd.DataFrame:
    """Figure 7's cells: the mean softmax vector of each unknown class, the mean over seeds.

    For an unknown class u of n_u samples and a known class c,

        cell(u, c) = 1 / n_u sum_{i in u} softmax_c(x_i)

    Args:
        means: one row per run and class, columns printed, class, source and 0 to K - 1 (as text),
            the softmax of each known class, the mean over the class's samples. No row gives none.
        classes: columns class, source, kind (known, near, far, noise), label (of a known class,
            0 to K - 1) and name. Rows and columns of the figure stand in this order.
        at_most: classes of a kind, those whose largest cell is the largest over all methods'
            mean.

    Returns:
        printed, kind, class (the name of an unknown one), known (the name of a known one), softmax
        and runs (how many it is the mean of).

    Raises:
        ValueError: a column is missing.
    """
    if means.empty:
        return pd.DataFrame(columns=SOFTMAX)
    need(classes, ["class", "source", "kind", "label", "name"])
    is_known = classes["kind"] == "known"
    names = classes[is_known].sort_values("label").astype({"label": str})
    names = dict(zip(names["label"], names["name"], strict=True))
    need(means, ["printed", "class", "source", *names])
    long = classes[~is_known].merge(means, on=["class", "source"]).drop(columns=["class"])
    long = long.rename(columns={"name": "class"}).melt(SOFTMAX[:3], [*names], "known", "softmax")
    long["known"] = long["known"].map(names)
    cells = long.groupby(SOFTMAX[:4], sort=False)["softmax"].agg(["mean", "size"]).reset_index()
    surest = cells.groupby(SOFTMAX[:3])["mean"].max().groupby(["kind", "class"]).mean()
    surest = surest.groupby("kind").nlargest(at_most).index.droplevel(0)
    cells = cells[pd.MultiIndex.from_frame(cells[["kind", "class"]]).isin(surest)]
    return cells.set_axis(SOFTMAX, axis=1).reset_index(drop=True)


def concentrated(runs: pd.DataFrame, resamples: int) -> Evidence:
    """By how much the class that Baseline has most softmax on leads, on each far set.

    With q the mean softmax vector over the classes of a far set and c the class in which that of
    Baseline is largest, in the same split: q_c minus the largest of the others. Below 0 where
    another class leads.

    Args:
        runs: from `names.in_print`, with paths of their scores tables.
        resamples: R; all are the number itself, since a mean has no image to draw.

    Returns:
        A row per run and far set that has such means, measure lead, task `CONCENTRATION`.
    """
    of_run = [name for name in OF_RUN if name in runs]
    means = tables.artefacts(runs, "mean_softmax", *of_run[1:])
    if "source" not in means:
        return Evidence(pd.DataFrame(columns=KEYS), {"lead": np.empty((0, 1 + resamples))})
    rows = means.groupby([*of_run, "source"], as_index=False).mean(numeric_only=True)
    labels = [name for name in rows if name.isdigit()]
    among = rows[rows["method"] == "softmax"].groupby(["place", "split", "source"])[labels].mean()
    rows = rows.merge(among.idxmax(axis=1).rename("first").reset_index())
    softmax = rows[labels].to_numpy()
    first = np.array(labels) == rows["first"].to_numpy()[:, None]
    lead = softmax[first] - np.nanmax(np.where(first, -np.inf, softmax), axis=1)
    called = [printed_sources("kim2021", row).get(row["source"], "") for _, row in rows.iterrows()]
    keys = rows[of_run].astype(str).assign(task=CONCENTRATION, source=called)
    keys["printed"] = rows["method"].replace("softmax", "baseline")
    return Evidence(
        keys.reindex(columns=KEYS, fill_value=""),
        {"lead": np.repeat(lead[:, None], 1 + resamples, axis=1)},
    )
