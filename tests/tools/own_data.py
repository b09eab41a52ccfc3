"""Runs on the papers' own data beside print: which cells take a difference, and how large it is.

A mean of splits is held against a mean of as many, a training of fewer epochs than print's against
nothing, and a row that the paper quotes from others against nothing either, for it was trained in
another way. The plain networks of Vaze et al. stand beside a third party's runs of the same code,
split by split. Of Kim et al. the far sets have to be there, all of them, for what pools them.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from osnb import metrics
from osnb.base import stamps
from osnb.evidence import across, claims, kim2021, names, tables
from osnb.evidence.build import MANY, evidence
from osnb.evidence.names import TASKS, UNKNOWN
from osnb.experiment import layers

POINT = 0.01
KEY = ["place", "split", "printed", "task", "source", "metric"]
OURS = [*KEY, "method", "own", "low", "high", "unit", "sd", "of", "own_epochs", "precision"]
OURS += ["missing", "told", "run"]
OF = {"21_vaze_train": ("vaze2022", "shifts"), "31_kim_train": ("kim2021", "unified")}
DRAWS = {"cifar40": "first", "cifar40_draw1": "second", "cifar40_draw2": "third"}
THIRD = "third party's run"  # of the plain networks' code; no number of the paper
ALIKE = ["benchmark", "network", "method", "regime", "epochs", "precision"]  # of runs of one cell
FAST = ["accuracy", "MSP", "MLS"]  # of the fast regime's networks
PACKED = "tinyimagenet_parquet"  # JPEG of lower quality than what we have of CIFAR
TOLD = "its external images are told by their codec"
PARTLY = {  # far sets of which ours are not print's
    "DTD": "10 of 47 textures",
    "Gaussian Noise": "print does not say which noise",
}
OTHERWISE = {  # of what is at hand, as far as the settings do not say it
    "cifar10": "images compressed once more",
    "cifar": "images compressed once more, 40 known classes of our draw",
}


def cells() -> pd.DataFrame:
    """Printed cells that networks of this size can fill, rates in [0, 1].

    Returns:
        paper, artefact, `KEY` (split is empty for a mean), value, trainings (of the mean), over
        (splits or seeds), epochs, quoted (from whom, or nothing).
    """
    one = claims.vaze_table("1", split="").assign(epochs=600)
    one["quoted"] = one["citation"].where(one["source"] == "cited", "")
    third = claims.in_points(tables.published("known_runs", "vaze2022")).assign(table=THIRD)
    third = third.query("place == 'cifar10' and split_idx != 'mean'")
    third = third.assign(printed="msp", epochs=100, split=third["split_idx"])
    vaze = pd.concat([one, claims.steps().assign(split=""), third]).assign(paper="vaze2022")
    vaze = vaze.rename(columns={"table": "artefact"}).assign(task=UNKNOWN, source="", over="splits")
    vaze = vaze.assign(value=vaze["value"] / 100, trainings=np.where(vaze["split"] == "", 5, 1))
    kim = kim2021.results().query("place == 'cifar'").rename(columns={"n_runs": "trainings"})
    kim = kim.assign(paper="kim2021", artefact="Table 5", split="", over="seeds")
    kim = kim.assign(epochs=kim["place"].map(kim2021.EPOCHS))
    both = pd.concat([vaze, kim]).fillna({"quoted": ""}).reset_index(drop=True)
    both["printed"] = both["printed"].str.lower()
    kept = ["value", "trainings", "over", "epochs", "quoted"]
    return both[["paper", "artefact", *KEY, *kept]].dropna(subset="value")


def ours(*, resamples: int = 1000) -> pd.DataFrame:
    """The same cells of finished runs of size paper; none of a notebook without such runs.

    Returns:
        `KEY`, method, own, low, high, unit (drawn for the interval: class or sample), sd and
        of (how many splits or seeds), own_epochs, precision, missing (far sets that the
        benchmark has and the run has not), told (by what a method tells its external images),
        run.
    """
    found = []
    for notebook, (paper, tasks) in OF.items():
        try:
            runs = names.in_print(tables.collect(notebook, "paper"), paper)
        except FileNotFoundError:
            continue
        for _, part in runs.groupby(ALIKE):
            found.append(_measured(part, tasks, paper, resamples))
    return pd.concat(found or [pd.DataFrame(columns=OURS)], ignore_index=True)


def _measured(runs: pd.DataFrame, tasks: str, paper: str, resamples: int) -> pd.DataFrame:
    """Cells of alike runs, of one benchmark, method and regime: their mean, and each split's."""
    first, over = runs.iloc[0], "splits" if paper == "vaze2022" else "seeds"
    scores = tables.read(first["path"])
    known = scores.loc[scores["role"] == "known", "class"].nunique()
    few = {
        (part.task, part.source)
        for part in TASKS[tasks].parts(scores, first)
        if min(known, known if part.rows is None else part.rows["class"].nunique()) < MANY
    }
    by, rows = ["place", "printed", "task", "source"], []
    for unit in ("class", "sample"):
        numbers = evidence(runs, tasks, paper, unit=unit, resamples=resamples)
        is_few = pd.MultiIndex.from_frame(numbers.keys[["task", "source"]]).isin(few)
        numbers = numbers.only(is_few == (unit == "sample"))
        if numbers.keys.empty:
            continue
        means = across.summary(numbers, *by, over=over).assign(split="", unit=unit)
        means["of"] = means[over].map(lambda x: len(x.split(", ")) if isinstance(x, str) else x)
        rows.append(means.rename(columns={f"sd_{over}": "sd"}))
        if over == "splits":
            each = across.summary(numbers, *by, "split").rename(columns={"sd_seeds": "sd"})
            rows.append(each.assign(of=each["seeds"], unit=unit))
    table = pd.concat(rows, ignore_index=True).rename(columns={"value": "own"})
    table["source"] = table["source"].replace(kim2021.SETS["cifar"])
    whole = layers.catalogue("benchmarks")["benchmarks"][first["benchmark"]]["paper"]
    missing = sorted({*whole.get("also", "").split()} - {*first["also"].split()})
    told = TOLD * (first["method"] == "oe" and PACKED in first["reader"].split())
    table = table.assign(method=first["method"], own_epochs=runs["epochs"].min(), told=told)
    return table.assign(precision=first["precision"], missing=" ".join(missing))[OURS]


def barred(cell: Mapping[str, Any]) -> str:
    """Why a printed cell takes no difference from a number of ours; nothing if it does.

    Args:
        cell: of `cells`, beside `ours`.
    """
    why = []
    if cell["quoted"]:
        why.append(f"quoted from {cell['quoted']}, trained otherwise")
    elif cell["own_epochs"] < cell["epochs"]:
        why.append(f"epochs {cell['own_epochs']} of {cell['epochs']}")
    if cell["over"] == "splits" and cell["of"] < cell["trainings"]:
        why.append(f"{cell['of']} of {cell['trainings']} splits")
    if cell["task"] == "far":
        why.append(PARTLY.get(cell["source"], ""))
    if cell["task"] == "wrong" and cell["printed"] == "openmax":
        why.append("classes are Baseline's, in print OpenMax's own")
    if cell["task"] == UNKNOWN and cell["missing"]:
        why.append(f"far sets that are not there: {cell['missing'].replace(' ', ', ')}")
    return ", ".join(filter(None, why))


def otherwise(cell: Mapping[str, Any]) -> str:
    """What a number that takes a difference was made with, other than print's."""
    found = [OTHERWISE.get(cell["place"], ""), rounded(cell)]
    if cell["method"] == "released":
        found.append("the authors' weights")
    if cell["over"] == "seeds" and cell["of"] < cell["trainings"]:
        found.append(f"{cell['of']:.0f} of {cell['trainings']:.0f} seeds")
    return ", ".join(filter(None, found))


def rounded(cell: Mapping[str, Any]) -> str:
    """In which precision a network was trained, if not in print's."""
    usual = cell["precision"] == "float32" or cell["method"] == "released"
    return "" if usual else f"precision {cell['precision']}"


def table(*, resamples: int = 1000) -> pd.DataFrame:
    """Every printed cell that a run of ours is beside, in print's order.

    Returns:
        The columns of `cells` and `ours`, but for print (there value), ours (there own) and epochs
        ("600 of 600"); and difference (NaN where it takes none), within (points: 1, 2, further, or
        nothing), reason (why none is taken, else what is otherwise), variation (of a far set:
        AUROC of total variation alone) and solved, see `kim2021.variation`.
    """
    both = cells().merge(ours(resamples=resamples), on=KEY)
    alone = kim2021.variation("paper").query("task == 'far'").drop(columns=["images", "rougher"])
    both = both.merge(alone, on=["place", "task", "source"], how="left")
    records = both.to_dict("records")
    why = [barred(cell) for cell in records]
    gap = (both["own"] - both["value"]).where([not x for x in why]).astype(float)
    steps = [gap.abs() <= 1e-9 + POINT, gap.abs() <= 1e-9 + 2 * POINT, gap.notna()]
    both = both.assign(within=np.select(steps, ["1", "2", "further"], ""), difference=gap)
    both["reason"] = [
        ", ".join(filter(None, [x, rounded(cell)])) if x else otherwise(cell)
        for x, cell in zip(why, records, strict=True)
    ]
    unexplained = (both["within"] == "further") & (both["reason"] == "")
    both["reason"] = both["reason"].mask(unexplained, "no reason found: same settings")
    whole = (" of " + both["epochs"].astype(str)).where(both["quoted"] == "", "")
    both["epochs"] = both["own_epochs"].astype(str) + whole
    return both.rename(columns={"value": "print", "own": "ours"})


def counted(made: pd.DataFrame) -> str:
    """How many cells of `table` can be compared, and how near to print they lie.

    One number may be printed twice, as Vaze et al.'s MLS in Tables 1 and 5. A point is .01 of a
    rate, and 10 of an AURC that is printed times 1000.
    """
    near, all_in = made["within"].value_counts(), int((made["within"] != "").sum())
    parts = [f"{near.get('1', 0)} within one point", f"{near.get('2', 0)} within two"]
    parts += [f"{near.get('further', 0)} further", f"{len(made) - all_in} take no difference"]
    taken = made[made["within"] != ""]
    same = ["place", "split", "task", "source", "metric", "print", "ours"]
    third, twice = (taken["artefact"] == THIRD).sum(), taken.duplicated(same).sum()
    of = f"of the {all_in}, {third} are of a third party's run and {twice} are printed twice"
    return f"{all_in} of {len(made)} can be compared: {', '.join(parts)}; {of}"


def shown(made: pd.DataFrame) -> pd.DataFrame:
    """The table as text: a row a cell."""
    rows = []
    for row in made.to_dict("records"):
        what = [row["place"], row["task"], row["source"], row["split"] and f"split {row['split']}"]
        cell = f"{', '.join(filter(None, what))}: {row['metric']} of {row['printed'].upper()}"
        some = {"class": "classes", "sample": "images"}[row["unit"]]
        numbers = {"paper": f"{row['print']:.3f}", "own data": f"{row['ours']:.3f}"}
        numbers["95 %"] = f"[{row['low']:.3f}, {row['high']:.3f}] over {some}"
        gap = "" if np.isnan(row["difference"]) else f"{row['difference']:+.3f}"
        spread = f"{row['sd']:.3f} ({row['of']})" if row["of"] > 1 else "one"
        more = {"difference": gap, "deviation (of)": spread, "epochs": row["epochs"]}
        head = {"of": row["paper"], "artefact": row["artefact"], "compared": cell}
        told = f"total variation alone: AUROC {row['variation']:.3f}" + f" {row['solved']}".rstrip()
        remark = [row["reason"], row["told"], told * (row["variation"] == row["variation"])]
        rows.append(head | numbers | more | {"remark": ", ".join(filter(None, remark))})
    columns = ["of", "artefact", "compared", "paper", "own data", "95 %", "difference"]
    columns += ["deviation (of)", "epochs", "remark"]
    return pd.DataFrame(rows, columns=columns)


def draws(*, resamples: int = 1000) -> pd.DataFrame:
    """Baseline on each draw of CIFAR-40's known classes, as text; the paper does not list its own.

    Returns:
        A row a draw, of the shortest trainings of one precision, and print's row: draw, epochs,
        seeds, and one column a cell of known and near images, with its 95 % interval over classes.
    """
    runs = tables.collect("31_kim_train", "paper").query("method == 'softmax'")
    runs = runs[(runs["epochs"] == runs["epochs"].min()) & runs["benchmark"].isin(DRAWS)]
    alike = runs.groupby("precision")["benchmark"].transform("nunique")
    runs = runs[alike == alike.max()]
    placed = names.in_print(runs.assign(draw=runs["benchmark"], benchmark="cifar40"), "kim2021")
    parts = {
        DRAWS[draw]: _measured(part, "unified", "kim2021", resamples)
        for draw, part in placed.groupby("draw")
    }
    printed = cells().query("paper == 'kim2021' and printed == 'baseline'")
    printed = printed[printed["task"].isin(["wrong", "near"])].rename(columns={"value": "own"})
    parts["print"] = printed.assign(own_epochs=printed["epochs"], of=printed["trainings"])
    rows = []
    for draw, part in parts.items():
        part = part.merge(printed[KEY])
        row = {"draw": draw, "epochs": part["own_epochs"].iloc[0], "seeds": part["of"].iloc[0]}
        for cell in part.to_dict("records"):
            ends = f" [{cell['low']:.3f}, {cell['high']:.3f}]" if "low" in cell else ""
            row[f"{cell['task']}: {cell['metric']}"] = f"{cell['own']:.3f}{ends}"
        rows.append(row)
    return pd.DataFrame(rows).astype(str)


def precisions() -> pd.DataFrame:
    """Trainings of Kim et al.'s networks in float32 beside the same in bfloat16, as text.

    Returns:
        A row for each training that there is in both, with its accuracy and the AUROC of the
        largest softmax on near images, and one of the mean difference with its deviation.
    """
    key, rows = ["benchmark", "network", "method", "regime", "epochs", "split", "seed"], []
    for run in tables.collect("31_kim_train", "paper").to_dict("records"):
        scores = tables.read(run["path"]).query("role == 'known' or group == 'near'")
        right, near = rates(scores, "max_softmax_log_odds")
        numbers = {"accuracy": right, "near: auroc": near}
        rows.append({name: run[name] for name in [*key, "precision"]} | numbers)
    both = pd.DataFrame(rows).pivot(index=key, columns="precision")
    if {"float32", "bfloat16"} - {*both.columns.unique(1)}:
        return pd.DataFrame()
    both = both.dropna().sort_index()
    gaps = {x: both[x, "float32"] - both[x, "bfloat16"] for x in both.columns.unique(0)}
    both.columns = [f"{measure}, {precision}" for measure, precision in both.columns]
    text = both.map("{:.4f}".format).reset_index().astype(str)
    for measure, gap in gaps.items():
        spread = f"{gap.mean():+.4f}, deviation {gap.std():.4f}"
        text.loc[len(both), ["seed", f"{measure}, float32"]] = ["float32 less bfloat16", spread]
    return text.fillna("")


def front(made: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Ten rows for the front page: printed cells that take a difference, then what lists give.

    Of the methods of one table and measure the first one stands for all.

    Args:
        made: from `table`.
        others: from `gallery.front`.
    """
    first = made[(made["within"] != "") & (made["artefact"] != THIRD)].drop_duplicates(
        ["artefact", "task", "source", "metric"]
    )
    own = shown(first).drop_duplicates(["compared", "paper"])
    derived = others.rename(columns={"miniature": "own data"})  # no image of any size goes in
    rows = pd.concat([own, derived])[["of", "artefact", "compared", "paper", "own data"]]
    return rows.fillna("").iloc[: len(others)].reset_index(drop=True)


def fast() -> pd.DataFrame:
    """Runs of our fast regime on CIFAR-10 beside a third party's VGG32 of 100 epochs, as text.

    Returns:
        A row a split and seed: split, seed, method, epochs and otherwise (settings that are not
        the regime's); accuracy and AUROC (MSP, MLS); accuracy and MSP of the third party's.
    """
    rows = _of_fast()
    if rows.empty:
        return rows
    third = cells().query("artefact == @THIRD").pivot_table("value", "split", "metric")
    theirs = third.loc[rows["split"].astype(str)].reset_index(drop=True)
    rows["VGG32: accuracy"], rows["VGG32: MSP"] = theirs["accuracy"], theirs["auroc"]
    return rows.map(lambda x: f"{x:.3f}" if isinstance(x, float) else str(x))


def fast_means() -> pd.DataFrame:
    """The runs of `fast` in short, as text: one of each recipe, then the third party's.

    Returns:
        A row a recipe: method, epochs, otherwise, splits, runs; accuracy and AUROC (MSP, MLS): the
        mean over splits, and of each split over seeds. Of the third party's VGG32 on these splits
        no MLS is known.
    """
    rows = _of_fast()
    if rows.empty:
        return rows
    third = cells().query("artefact == @THIRD").astype({"split": int})
    third = third[third["split"].isin(rows["split"])].pivot_table("value", "split", "metric")
    third = third.rename(columns={"auroc": "MSP"}).reset_index()
    third = third.assign(epochs=100, otherwise="a third party's VGG32", method="softmax")
    parts = [_over_splits(part, "epochs", "otherwise", "method") for part in (rows, third)]
    columns = ["epochs", "method", "otherwise", "splits", "runs", *FAST]
    return pd.concat(parts, ignore_index=True)[columns].fillna("").astype(str)


def _over_splits(rows: pd.DataFrame, *by: str, form: str = "{:.3f}") -> pd.DataFrame:
    """A row a recipe: its splits and runs, and each measure's mean over splits, then each split's.

    Args:
        rows: as from `_of_fast`; one of no runs gives none.
        by: columns that the runs of a recipe share.
        form: of a number.
    """
    found = []
    for recipe, part in rows.groupby([*by]):
        each = part.groupby("split")[[name for name in FAST if name in part]].mean()
        row = dict(zip(by, recipe, strict=True)) | {"splits": ", ".join(map(str, each.index))}
        row["runs"] = len(part)
        for name, column in each.items():
            row[name] = f"{form.format(column.mean())} ({', '.join(map(form.format, column))})"
        found.append(row)
    return pd.DataFrame(found)


def ingredients() -> pd.DataFrame:
    """What one ingredient of the fast regime does to a network, the others kept, as text.

    Returns:
        A row an ingredient and number of epochs: epochs, otherwise (what is not the regime's: a
        method, a setting), splits, runs; of accuracy and AUROC (MSP, MLS) how much more it is than
        with the regime's own and the same seed: the mean over splits, and of each split over seeds.
    """
    rows = _of_fast()
    if rows.empty:
        return rows
    plain = (rows["method"] == "softmax") & (rows["otherwise"] == "")
    chance = ["epochs", "split", "seed"]
    both = rows[~plain].merge(rows.loc[plain, [*chance, *FAST]], on=chance, suffixes=("", " own"))
    named = both["otherwise"].where(both["method"] == "softmax", "method=" + both["method"])
    both[FAST] -= both[[f"{name} own" for name in FAST]].to_numpy()
    both = both.assign(otherwise=named)
    return _over_splits(both, "epochs", "otherwise", form="{:+.3f}").astype(str)


def _of_fast() -> pd.DataFrame:
    """Runs of the fast regime, as `fast` has them, in numbers, sorted."""
    rows, order = [], ["epochs", "otherwise", "split", "seed"]
    for path, stamp in stamps.finished("21_vaze_train", "paper"):
        columns = stamp["columns"]
        if (columns["benchmark"], columns["regime"]) != ("cifar10", "fast"):
            continue
        numbers = rates(tables.read(path), "max_softmax_log_odds", "max_logit")
        changed = layers.words(stamp["parameters"]["overrides"]).items()
        words = [f"{name}={value}" for name, value in changed if name not in ("answer", "epochs")]
        head = {name: columns[name] for name in ("split", "seed", "method")}
        head |= {"epochs": stamp["settings"]["epochs"], "otherwise": " ".join(words)}
        rows.append(head | dict(zip(FAST, numbers, strict=True)))
    return pd.DataFrame(rows).sort_values(order, ignore_index=True) if rows else pd.DataFrame()


def rates(scores: pd.DataFrame, *rules: str) -> list[float]:
    """Accuracy in [0, 1], then AUROC of each rule, known images against all others.

    Args:
        scores: a scores table.
        rules: its columns.
    """
    is_known = scores["role"] == "known"
    known, others = scores[is_known], scores[~is_known]
    areas = [metrics.auroc(known[rule].to_numpy(), others[rule].to_numpy()) for rule in rules]
    return [(known["pred"] == known["label"]).mean(), *areas]


def norms() -> pd.DataFrame:
    """How long the features of trained networks are, and what length alone tells, as text.

    Figure 7a and 7c of Vaze et al. (Appendix B), after the last epoch.

    Returns:
        A row a cross-entropy network with the norms in its table: benchmark, split, network,
        epochs; mean L2 norm of known and of unknown test images' features, known over unknown;
        AUROC of the norm alone, MSP and MLS, and the norm's share of MLS's way up from chance.
    """
    rows = []
    for path, stamp in stamps.finished("21_vaze_train", "paper"):
        columns, scores = stamp["columns"], tables.read(path)
        if columns["method"] not in ("softmax", "released") or "feature_norm" not in scores:
            continue
        row = {name: str(columns[name]) for name in ("benchmark", "split", "network")}
        row["epochs"] = str(stamp["settings"]["epochs"])
        length = scores.groupby(scores["role"] == "known")["feature_norm"].mean()
        row |= {"norm, known": length[True], "norm, unknown": length[False]}
        row["known over unknown"] = length[True] / length[False]
        _, norm, msp, mls = rates(scores, "feature_norm", "max_softmax_log_odds", "max_logit")
        row |= {"AUROC: norm": norm, "MSP": msp, "MLS": mls}
        rows.append(row | {"way up": (norm - 0.5) / (mls - 0.5)})
    return pd.DataFrame(rows).map(lambda x: f"{x:.3f}" if isinstance(x, float) else x)


def decided() -> pd.DataFrame:
    """Claims that runs of size paper decide, as text; a short training decides for itself alone."""
    found = claims.decide(["vaze2022", "kim2021"], ["paper"]).dropna(subset="number")
    ends = zip(found["number"], found["low"], found["high"], strict=True)
    found["number"] = [
        f"{value:+.3f}" + f" [{low:.3f}, {high:.3f}]" * (low == low) for value, low, high in ends
    ]
    found["runs"] = [*map(_recipes, found["runs"])]
    found = found.rename(columns={"paper": "of", "where": "on"})
    return found[["of", "section", "claim", "on", "answer", "number", "runs"]].astype(str)


def _recipes(runs: str) -> str:
    """Names of runs without seeds and splits, each once, with how many runs it stands for."""
    names, apart, sets = runs.partition("; ")
    many = Counter(re.sub(r"-(seed|split)\d+", "", run) for run in names.split(", "))
    return ", ".join(name + f" ({n})" * (n > 1) for name, n in many.items()) + apart + sets
