"""What the report says of artefacts, runs, notebooks and claims, as values for the templates."""

import re
from collections import Counter
from pathlib import Path

import pandas as pd

from osnb.base import workbook
from osnb.book import record
from osnb.book.verify import shown
from osnb.evidence import gallery
from osnb.protocols import quickdraw

KEPT = "Not executed here: these are the notebook and the outputs that are in git."
KINDS = ("table", "figure")
WRONG = {  # verdicts of `osnb verify`, as a reader understands them
    "missing": "without a file",
    "edited": "edited",
    "unstamped": "without a stamp",
    "code": "computed by code that has changed",
    "parameters": "of a params file that has changed",
    "inputs": "made from runs that have changed",
}
SHORT = 7  # characters of a commit
ANSWERS = {"holds": "hold", "does not hold": "do not hold"}  # of several
ANSWERS |= {"shows": "shown", "does not show": "not shown", "undecided": "undecided"}
LISTS = workbook.PACKAGE / "data" / "quickdraw" / "lists.csv"
RESULTS = Path("41_quickdraw_openset", "mini", "results.csv")


def runs() -> list[dict]:
    """run.json of each run that is done and has its executed copy, by notebook and run."""
    base = workbook.out() / "runs"
    done = [run for run in record.everything() if run["state"] == "done"]
    done = [x | {"executed": base / x["notebook"] / x["run"] / "executed.ipynb"} for x in done]
    return [run for run in done if run["executed"].is_file()]


def notebooks(done: list[dict]) -> list[dict]:
    """Each notebook with its title, its pages (a run each, or the copy in git) and params files."""
    known = []
    for path in sorted((workbook.root() / "notebooks").glob("*.ipynb")):
        name = path.stem
        pages = [_page(run) for run in done if run["notebook"] == name]
        kept = {"run": workbook.declared(path)["run"], "source": path, "note": KEPT}
        pages = pages or [kept | {"imported": False}]
        params = sorted((workbook.root() / "params" / name).glob("*.yaml"))
        bases = (workbook.root(), workbook.out())
        published = {x.name for base in bases for x in (base / "figures" / name).glob("*")}
        about = {"name": name, "title": title(workbook.cells(path)), "pages": pages}
        about["params"] = [{"run": file.stem, "file": file} for file in params]
        about["elsewhere"] = sorted(published - {page["run"] for page in pages})
        known.append(about)
    return known


def _page(found: dict) -> dict:
    imported, when = "imported" in found, f"{found['finished'][:16].replace('T', ' ')} UTC"
    note = f"Executed {'elsewhere' if imported else 'here'}, {when}"
    note += f", in {found['seconds']:.0f} s, {_commit(found)}."
    return {"run": found["run"], "source": found["executed"], "note": note, "imported": imported}


def _commit(found: dict) -> str:
    if not found.get("commit"):
        return "no commit known"
    return f"commit {found['commit'][:SHORT]}" + (" with changes" if found.get("dirty") else "")


def title(cells: list[dict]) -> str:
    """The heading that a notebook begins with; nothing if it begins otherwise."""
    first = "".join(cells[0]["source"]) if cells and cells[0]["cell_type"] == "markdown" else ""
    found = re.match(r"# +(\S.*)", first)
    return found[1] if found else ""


def follows(verdicts: list[dict[str, str]]) -> str:
    """How many artefacts follow from code, params and inputs, and how many do not, by verdict."""
    counts = Counter(row["verdict"] for row in verdicts)
    wrong = ", ".join(f"{counts[x]} {word}" for x, word in WRONG.items() if counts[x])
    said = f"{counts['follows']} of {len(verdicts)} figures, tables and scores tables follow"
    return f"{said}; the others: {wrong}" if wrong else said


def span(done: list[dict]) -> list[str]:
    """The first and the last run: when, which, at what commit."""
    ends = [pick(done, key=lambda run: run["finished"]) for pick in (min, max)] if done else []
    return [f"{x['finished'][:10]}, {x['notebook']}/{x['run']}, {_commit(x)}" for x in ends]


def papers(decided: pd.DataFrame, verdicts: list[dict[str, str]]) -> list[dict]:
    """Each paper with its artefacts, how many of them are done, and its claims' answers."""
    found = gallery.artefacts(workbook.root(), workbook.out())
    faults = {x["artefact"]: WRONG[x["verdict"]] for x in verdicts if x["verdict"] in WRONG}
    wrong = {str(Path(name).with_suffix("")): verdict for name, verdict in faults.items()}
    stems = [shown(row.folder / row.file) if row.run else "" for row in found.itertuples()]
    found["wrong"] = [wrong.get(stem, "") for stem in stems]
    found = found.drop(columns=["shows", "missing"]).merge(gallery.shown(found))
    told = []
    for paper, title in gallery.PAPERS.items():
        rows, claims = (frame[frame["paper"] == paper] for frame in (found, decided))
        parts = rows.groupby("artefact", sort=False)
        each = [_artefact(name, part, claims) for name, part in parts]
        done, waits = [x for x in each if not x["waits"]], [x for x in each if x["waits"]]
        there = {kind: [not x["waits"] for x in each if x["kind"] == kind] for kind in KINDS}
        count = {kind: f"{sum(of)} of {len(of)}" for kind, of in there.items()}
        known = {"key": paper, "title": title, "reading": gallery.READING.get(paper, "")}
        known |= {"done": done, "open": waits, "total": len(each), "answers": _answers(claims)}
        told.append(known | {"count": count, "wrong": sum(bool(x["wrong"]) for x in done)})
    return told


def _artefact(name: str, rows: pd.DataFrame, decided: pd.DataFrame) -> dict:
    """An artefact with its parts, what it waits for, and the answers of its claims."""
    first = rows.iloc[0]
    about = decided[decided["section"].map(lambda section: _about(section, name)).astype(bool)]
    made = [_made(row) for row in rows.to_dict("records") if row["run"]]
    parts = []
    for each in made:
        heads = {*each["compared"].split("; ")}
        group = next((x for x in parts if _alike(x[0], each["part"], heads)), None)
        if group is None:
            parts.append(group := [])
        group.append(each)
        each["beside"] = gallery.beside(group[0]["compared"], each["compared"], each["ours"])
    return first[["kind", "title", "missing"]].to_dict() | {
        "name": name,
        "anchor": f"{first['paper']}-{name.lower().replace(' ', '-')}",
        "shows": ", ".join(filter(None, [first["shows"], first["cells"]])),
        "waits": list(dict.fromkeys(rows.loc[rows["run"] == "", "notebook"])),
        "wrong": list(dict.fromkeys(filter(None, rows["wrong"]))),
        "parts": parts,
        "answers": _answers(about),
    }


def _alike(first: dict, part: str, heads: set[str]) -> bool:
    """Whether a run of a part is shown below another one, which has a heading for each number."""
    return first["part"] == part and heads <= {*first["compared"].split("; "), ""}


def _made(row: dict) -> dict:
    names = {kind: f"{row['file']}.{kind}" for kind in ("svg", "csv", "tex", "json")}
    files = {kind: name for kind, name in names.items() if (row["folder"] / name).is_file()}
    place = f"figures/{row['notebook']}/{row['run']}"
    alt = f"{row['part']} of {row['paper']}, {row['run']}: {row['title']}"
    try:
        table = pd.read_csv(row["folder"] / names["csv"], dtype=str, keep_default_na=False)
    except ValueError as error:  # pandas' own and of no utf8
        table = pd.DataFrame({f"{names['csv']} is no table": [str(error)]})
    return row | {"files": files, "place": place, "alt": alt, "table": table}


def _about(section: str, artefact: str) -> bool:
    """Whether a claim's section, such as "Tables 5, 6, Sec. 4.2", names the artefact."""
    kind, number = artefact.split()
    named = re.findall(rf"{kind}s? (\d+\w*(?:, \d+\w*)*)", section)
    return number in re.findall(r"\d+", " ".join(named))


def sizes(decided: pd.DataFrame) -> list[str]:
    """The sizes on which any claim is not undecided."""
    told = set(decided.loc[decided["answer"] != "undecided", "size"])
    return [size for size in decided["size"].unique() if size in told]


def _answers(decided: pd.DataFrame) -> dict[str, str]:
    """By size that answers any: how many claims get each answer."""
    counts = {x: Counter(decided.loc[decided["size"] == x, "answer"]) for x in sizes(decided)}
    return {
        size: ", ".join(f"{of[x]} {word}" for x, word in ANSWERS.items() if of[x])
        for size, of in counts.items()
    }


def claimed(decided: pd.DataFrame) -> list[dict]:
    """A table of claims per paper: one row per claim and scope, sizes beside each other."""
    found = []
    for paper, rows in decided.groupby("paper", sort=False):
        columns, lines, before = sizes(rows), [], None
        for (name, where), cells in rows.groupby(["id", "where"], sort=False):
            answers = {row.size: _answer(row) for row in cells.itertuples(index=False)}
            claim = cells.iloc[0].to_dict() if name != before else None
            line = {"where": where, "claim": claim}
            lines.append(line | {"cells": [answers.get(size, "") for size in columns]})
            before = name
        found.append({"paper": paper, "sizes": columns, "lines": lines})
    return found


def _answer(row: tuple) -> str:
    if pd.isna(row.number):
        return row.answer
    between = "" if pd.isna(row.low) else f" [{row.low:+.2f}, {row.high:+.2f}]"
    return f"{row.answer} {row.number:+.3f}{between}"


# The benchmark `quickdraw-openset`: its frozen lists, what our methods reach


def benchmark() -> dict:
    """What the page of `quickdraw-openset` shows: lists, results of each protocol that has any."""
    lists = pd.read_csv(LISTS)
    known = {"title": quickdraw.NAME, "version": quickdraw.VERSION, "tuning": quickdraw.TUNING}
    known |= {"lists": lists.drop(columns=["name", "version"]), "results": {}}
    every = (make(split=i) for make, n in quickdraw.SPLITS.values() for i in range(n))
    known["classes"] = pd.concat(every)["wnid"].nunique()
    kept = [base / "figures" / RESULTS for base in (workbook.out(), workbook.root())]
    for file in [file for file in kept if file.is_file()][:1]:
        for protocol, rows in pd.read_csv(file).groupby("protocol", sort=False):
            known["results"][protocol] = _intervals(rows.drop(columns="protocol"))
    return known


def _intervals(rows: pd.DataFrame) -> pd.DataFrame:
    """Each measure with its interval in one cell."""
    for low in [name for name in rows if name.endswith("_low")]:
        name = low.removesuffix("_low")
        values = rows[[name, low, f"{name}_high"]].to_numpy()
        text = [f"{value:.3f} [{below:.2f}, {above:.2f}]" for value, below, above in values]
        rows = rows.drop(columns=[low, f"{name}_high"]).assign(**{name: text})
    return rows
