"""Every table and figure of the papers, what in figures/ reproduces it; the rows of both READMEs.

What an artefact compares stands in its stamp, where its notebook saved it: `tables.headline`.
"""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from osnb.base import workbook

SIZES = ("mini", "tiny", "paper")
SHOWS = {"full": "show what the paper's does", "part": "are parts", "stand-in": "are stand-ins"}
SHOWS |= {"not made": "are not made"}
NOT_MADE = dict.fromkeys(("run", "size", "folder", "compared", "theirs", "ours"), "")
_TEXTS = pd.read_csv(workbook.PACKAGE / "evidence" / "papers.csv", index_col="paper").fillna("")
PAPERS = _TEXTS["title"].to_dict()
READING = _TEXTS["reading"].to_dict()  # how to read the numbers compared
FRONT = _TEXTS["front"].str.split("; ").to_dict()  # parts that the front page shows
LISTED = workbook.PACKAGE / "evidence" / "artefacts.csv"
MARKS = "<!-- {name}: start -->\n", "<!-- {name}: end -->"
SIZE_NAMES = {"mini": "miniature", "tiny": "photographs at 32 px"}
FINDINGS = "13_palechor_results"


def artefacts(*bases: Path) -> pd.DataFrame:
    """Each part of each artefact, once per run that made it, or once alone if none did.

    Args:
        bases: folders that hold figures/; a run in a later one takes an earlier one's place.

    Returns:
        paper, artefact, kind, title, shows and missing (as `artefacts.csv` has them, see `shown`),
        part (such as Table 2a), notebook, file (without suffix), run, size, folder, compared,
        theirs, ours; the last six are empty where no run made it.
    """
    rows = []
    for row in pd.read_csv(LISTED, keep_default_na=False).to_dict("records"):
        files, notebooks = row.pop("files").split(), row.pop("notebook").split()
        if len(notebooks) not in {1, len(files)}:
            raise ValueError(f"one notebook, or one per file of {files}; got {notebooks}")
        for notebook, file in zip(notebooks * (len(files) // len(notebooks)), files, strict=True):
            part = file.capitalize().replace("_", " ")
            here = row | {"part": part, "notebook": notebook, "file": file}
            rows += [here | run for run in _made(notebook, file, bases) or [NOT_MADE]]
    return pd.DataFrame(rows)


def _made(notebook: str, file: str, bases: tuple[Path, ...]) -> list[dict]:
    """The runs whose figures hold the file, the smallest size first, with what is compared."""
    runs = {}
    for base in bases:
        for path in sorted((base / "figures" / notebook).glob(f"*/{file}.json")):
            stamp = json.loads(path.read_text(encoding="utf8"))
            size, told = stamp["parameters"]["size"], headline(path.parent, file)
            runs[stamp["run"]] = {"run": stamp["run"], "size": size, "folder": path.parent} | told
    return sorted(runs.values(), key=lambda run: (SIZES.index(run["size"]), run["run"]))


def shown(made: pd.DataFrame) -> pd.DataFrame:
    """What each artefact shows of the paper's, a row an artefact.

    `artefacts.csv` says what it shows at best: full (all that the paper's does), part (some of it)
    or stand-in (the same of other images or of other trainings). A full one with an empty cell is
    a part, and what no run made is not made.

    Args:
        made: from `artefacts`.

    Returns:
        paper, artefact, shows (a key of `SHOWS`), cells (such as "53 of 56", the printed numbers
        that stand beside one of ours in the run that has most of them; empty of a figure, and
        where a table has no columns paper and ours) and missing (a sentence, or nothing).
    """
    rows = []
    for (paper, name), parts in made.groupby(["paper", "artefact"], sort=False):
        runs = parts.assign(cells=[_cells(run) for run in parts.itertuples()])
        filled, printed = map(sum, zip(*runs.groupby("part")["cells"].max(), strict=True))
        shows = parts["shows"].iloc[0]
        shows = "part" if shows == "full" and filled < printed else shows
        shows = shows if parts["run"].any() else "not made"
        cells = f"{filled} of {printed}" if printed else ""
        rows.append([paper, name, shows, cells, parts["missing"].iloc[0]])
    return pd.DataFrame(rows, columns=["paper", "artefact", "shows", "cells", "missing"])


def _cells(run: Any) -> tuple[int, int]:
    """Printed numbers of a run's table that have ours beside them, and all of them."""
    file = Path(run.folder) / f"{run.file}.csv"
    table = pd.read_csv(file) if run.run and file.is_file() else pd.DataFrame()
    if run.kind != "table" or not {"paper", "ours"} <= {*table}:
        return 0, 0
    printed = table["paper"].notna()
    return int(table.loc[printed, "ours"].notna().sum()), int(printed.sum())


def counted(shown: pd.DataFrame) -> str:
    """How many artefacts show what the paper's does, and how many do not, as a sentence."""
    counts = shown["shows"].value_counts()
    told = [f"{counts[key]} {words}" for key, words in SHOWS.items() if key in counts]
    return f"{len(shown)} artefacts: {', '.join(told)}."


def headline(folder: Path, file: str) -> dict[str, str]:
    """What an artefact compares, as text: compared, theirs and ours.

    Args:
        folder: of a run in figures/.
        file: the artefact's, without suffix; other stamps of the run may tell of it too.
    """
    groups: dict[str, list[dict]] = {}
    for path in sorted(folder.glob("*.json")):
        for row in json.loads(path.read_text(encoding="utf8")).get("headline") or []:
            if row.get("of", path.stem) == file:
                groups.setdefault(row["what"], []).append(row)
    theirs, ours = [], []
    for rows in groups.values():
        theirs.append(_joined(" / ", [_text(row["paper"], "") for row in rows]))
        ours.append(" / ".join(_text(row["ours"], row.get("unit", "")) for row in rows))
    return {"compared": "; ".join(groups), "theirs": _joined("; ", theirs), "ours": "; ".join(ours)}


def _joined(between: str, texts: list[str]) -> str:
    """The texts, one behind the other, or once if all are the same."""
    return between.join(texts if len({*texts}) > 1 else texts[:1])


def _text(value: Any, unit: str) -> str:
    """A rate with three digits, a count as it is, a dash for what is not there."""
    text = "-" if value is None else f"{value:.3f}" if isinstance(value, float) else f"{value}"
    return f"{text} ({unit})" if unit else text


def rows(root: Path, paper: str) -> pd.DataFrame:
    """One row per artefact of a paper, from the stamps in figures/.

    Args:
        root: the project's folder.
        paper: a key of `PAPERS`.

    Returns:
        artefact, shows (full, part or stand-in, and of how many cells), compared (what the numbers
        are), paper, miniature, photographs, files (with links from figures/).
    """
    made = artefacts(root)
    made = made[made["paper"] == paper]
    shows = shown(made).set_index("artefact")[["shows", "cells"]].agg(", ".join, axis=1)
    made = made[made["run"].isin(SIZE_NAMES)]
    table = []
    for part, runs in made.groupby("part", sort=False):
        first = runs.iloc[0]
        ours = {
            run.size: beside(first["compared"], run.compared, run.ours) for run in runs.itertuples()
        }
        row = {"artefact": part, "shows": shows[first["artefact"]].removesuffix(", ")}
        row |= {"compared": first["compared"], "paper": first["theirs"]}
        row |= {name: ours.get(size, "") for size, name in SIZE_NAMES.items()}
        table.append(row | {"files": "; ".join(_links(root, run) for run in runs.itertuples())})
    return pd.DataFrame(table)


def beside(compared: str, has: str, ours: str) -> str:
    """The numbers of a run, of what it has, for each thing compared; a dash for one it lacks."""
    if has == compared or not ours:
        return ours
    has = dict(zip(has.split("; "), ours.split("; "), strict=True))
    return "; ".join(has.get(name, "-") for name in compared.split("; "))


def _links(root: Path, run: Any) -> str:
    kinds = ["svg", "csv"] if run.kind == "figure" else ["csv"]
    kinds = [kind for kind in kinds if (run.folder / f"{run.file}.{kind}").is_file()]  # not run
    path = (run.folder / run.file).relative_to(root / "figures")
    return f"{run.run}: " + ", ".join(f"[{kind}]({path}.{kind})" for kind in kinds)


def front(root: Path) -> pd.DataFrame:
    """The ten rows of the front page: of each part of `FRONT` the first thing that it compares."""
    parts = []
    for paper, names in FRONT.items():
        table = rows(root, paper).set_index("artefact").reindex(names, fill_value="")
        table = table.drop(columns=["shows", "files"]).map(lambda cell: cell.partition("; ")[0])
        parts.append(table.reset_index().assign(of=paper))
    return pd.concat(parts, ignore_index=True)[["of", *parts[0].columns[:-1]]]


def findings(root: Path) -> pd.DataFrame:
    """What Palechor et al. found, decided on both sizes: a row per finding."""
    columns = {}
    for size, name in SIZE_NAMES.items():
        path = root / "figures" / FINDINGS / size / "findings.json"
        told = (
            json.loads(path.read_text(encoding="utf8")).get("headline", [])
            if path.is_file()
            else []
        )
        told = pd.DataFrame(told, columns=["what", "ours"])
        columns[name] = told.groupby("what", sort=False)["ours"].agg("; ".join)
    return pd.DataFrame(columns).fillna("not run").rename_axis("finding").reset_index()


def markdown(table: pd.DataFrame) -> str:
    """The rows as a table in Markdown."""
    head = "| " + " | ".join(table.columns) + " |\n" + "| --- " * len(table.columns) + "|\n"
    return head + "".join("| " + " | ".join(row) + " |\n" for row in table.to_numpy())


def block(text: str, name: str) -> str:
    """What stands between the two marks of `name` in a README."""
    start, end = (mark.format(name=name) for mark in MARKS)
    return text.partition(start)[2].partition(end)[0]


def update(readme: Path, tables: dict[str, pd.DataFrame | str]) -> None:
    """Put each table, or line, between the two marks of its name in the README.

    Raises:
        ValueError: it has not both marks of a name, in their order.
    """
    text = readme.read_text(encoding="utf8")
    for name, table in tables.items():
        content = f"{table}\n" if isinstance(table, str) else markdown(table)
        start, end = (mark.format(name=name) for mark in MARKS)
        before, _, rest = text.partition(start)
        if end not in rest:
            raise ValueError(f"{readme} needs {start} and, below it, {end}")
        text = f"{before}{start}{content}{end}{rest.partition(end)[2]}"
    with workbook.writing(readme) as aside:
        aside.write_text(text, encoding="utf8")
