"""The papers' tables as `Evidence`, under the keys of runs; the first key names the table."""

import pandas as pd

from osnb.evidence import tables
from osnb.evidence.build import Evidence
from osnb.evidence.kim2021 import TABLES, results
from osnb.evidence.names import OSCR, UNKNOWN
from osnb.evidence.palechor2023 import CCR

# of Vaze et al. 2022: rows that its tables call otherwise than rows.csv
ROWS = {"baseline (mls)": "mls", "mls (ours)": "mls", "baseline (msp+)": "msp+"}


def palechor2023() -> Evidence:
    """Both parts of Table 2, all of it on unknown images, gamma- too, as its caption says."""
    rows = tables.published("palechor2023", "table2").drop(columns="epoch")
    rows["table"] = rows["selection"].map({"last": "Table 2a", "best": "Table 2b"})
    rows = rows.assign(place="p" + rows["protocol"].astype(str), accuracy=rows["ccr_at_1"])
    rows = rows.drop(columns="protocol").rename(columns={"loss": "printed"} | CCR)
    keys = ["table", "selection", "place", "printed", "task"]
    return _evidence(rows.assign(task=UNKNOWN), keys)


def vaze2022() -> Evidence:
    """Tables 1, 3, 4, 7, 8 and 9, but for the rows that Table 1 cites, and two of Table 5.

    Hard is Medium and Hard in Table 3, and Hard alone, here hardest, in Table 9.
    """
    standard = {"task": UNKNOWN}
    parts = [
        _vaze("1", metric="auroc", **standard).query("source == 'this paper'"),
        _vaze("4", **standard),
        _vaze("3"),
        _vaze("9", metric="average_precision").pipe(_alone),
        _vaze("7", metric="auroc", task="far").assign(source=lambda x: x["ood"]),
        _vaze("8", metric="auroc", task="far").assign(source="six-sets"),
        _steps(),
    ]
    parts = [part.assign(source=part.get("source", "")) for part in parts]
    keys = ["place", "printed", "task", "source"]
    rows = pd.concat(parts)[["table", *keys, "metric", "value"]].dropna(subset="value")
    rows = rows.fillna("").assign(value=rows["value"] / 100)
    rows["table"] = rows.groupby(keys)["table"].transform(lambda names: ", ".join(names.unique()))
    wide = rows.pivot_table(index=["table", *keys], columns="metric", values="value")
    return _evidence(wide.reset_index(), ["table", *keys])


def _alone(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 9's rows, whose Hard is hardest where there is a Medium."""
    has = rows.dropna(subset="value").query("task == 'medium'")["place"]
    rows.loc[rows["place"].isin(has) & (rows["task"] == "hard"), "task"] = "hardest"
    return rows


def _steps() -> pd.DataFrame:
    """The baseline of Table 5, read by its softmax and by its logit."""
    rows = tables.published("vaze2022", "table5").query("row <= 2")
    rows = rows.assign(printed=["msp", "mls, baseline"], place="tinyimagenet", task=UNKNOWN)
    long = rows.melt(["printed", "place", "task"], [f"{m}_pct" for m in OSCR[:3]], "metric")
    return long.assign(table="Table 5", metric=long["metric"].str.removesuffix("_pct"))


def _vaze(number: str, **settings: str) -> pd.DataFrame:
    """A printed table under the names of `vaze2022`; its column of points is `value`."""
    rows = tables.published("vaze2022", f"table{number}")
    names = {"dataset": "place", "in_distribution": "place", "method": "printed"}
    names |= {"open_split": "task"}
    rows = rows.rename(columns=lambda c: "value" if c.endswith("_pct") else names.get(c, c))
    for key in {"place", "printed", "task", "ood"} & {*rows}:
        rows[key] = rows[key].str.lower().str.replace("gaussian noise", "gaussian-noise")
    return rows.replace({"printed": ROWS}).assign(table=f"Table {number}", **settings)


def kim2021() -> Evidence:
    """Tables 5 and 6, means over five trainings."""
    rows = results().assign(table=lambda x: "Table " + x["place"].map(TABLES).astype(str))
    rows = rows.assign(**{key: rows[key].str.lower() for key in ("printed", "source")})
    keys = ["table", "place", "printed", "task", "source"]
    wide = rows.pivot_table(index=keys, columns="metric", values="value")
    return _evidence(wide.reset_index(), keys)


def _evidence(rows: pd.DataFrame, keys: list[str]) -> Evidence:
    values = {name: rows[[name]].to_numpy() for name in rows if name not in keys}
    return Evidence(rows[keys].reset_index(drop=True), values)
