"""What goes beside runs that are published: citations, a manifest, model cards, lists."""

import hashlib
import io
import json
from collections.abc import Mapping
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from osnb.base import tables, workbook
from osnb.evidence import gallery, samples

CROISSANT = "mlcroissant"
LACKING = f"no Croissant of the protocols: {CROISSANT} makes it, pip install 'osnb[croissant]'"
LICENCE = "https://spdx.org/licenses/BSD-3-Clause"
SPEC = "https://codecheck.org.uk/spec/config/1.0/"
CARD = Path(__file__).with_name("card.md")


def members(runs: Mapping[str, dict[str, Any]]) -> dict[str, bytes]:
    """Files to go with runs: name in the archive, content.

    CITATION.cff, methods.bib and codecheck.yml are of all runs; cards/ and protocols/ have a file
    for each training run.

    Args:
        runs: content of run.json, by NOTEBOOK/RUN.
    """
    keys = [key for key, run in runs.items() if "scores.parquet" in run["outputs"]]
    scored = {key: tables.read(workbook.out() / "runs" / key / "scores.parquet") for key in keys}
    made = {"CITATION.cff": _citation(runs), "methods.bib": _bibliography(runs, scored)}
    made["codecheck.yml"] = _codecheck(runs)
    for key, table in scored.items():
        name, classes = key.replace("/", "--"), _classes(table)
        made[f"protocols/{name}.csv"] = classes
        made[f"cards/{name}.md"] = _card(key, runs[key], table, hashlib.sha256(classes).hexdigest())
        if find_spec(CROISSANT):
            made[f"protocols/{name}.json"] = _croissant(name, runs[key], classes)
    return made


def _yaml(content: dict[str, Any]) -> bytes:
    text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
    return text.encode()


def _known_citation() -> dict[str, Any]:
    return yaml.safe_load((workbook.root() / "CITATION.cff").read_text(encoding="utf8"))


def _citation(runs: Mapping[str, dict]) -> bytes:
    """The project's CITATION.cff, as a data set of these runs with their date and commits."""
    last = max(runs.values(), key=itemgetter("finished"))
    more = {"type": "dataset", "date-released": last["finished"][:10], "keywords": [*runs]}
    commit = {"commit": last["commit"]} if last.get("commit") else {}
    return _yaml(_known_citation() | more | commit)


def _bibliography(runs: Mapping[str, dict], scored: Mapping[str, pd.DataFrame]) -> bytes:
    """BibTeX of each method and rule; `keywords` are the scores tables in which it stands."""
    used: dict[str, list[str]] = {}
    for key, table in scored.items():
        for name in {*table.columns, runs[key].get("columns", {}).get("method", "")}:
            used.setdefault(name, []).append(key)
    sources, entries = pd.read_csv(workbook.PACKAGE / "published" / "methods.csv"), []
    for row in sources[sources["name"].isin(used)].itertuples():
        fields = {"author": row.authors, "title": f"{{{row.title}}}", "booktitle": row.where}
        fields |= {"year": row.year, "url": row.url, "keywords": ", ".join(sorted(used[row.name]))}
        lines = ",\n".join(f"  {name} = {{{value}}}" for name, value in fields.items())
        entries.append(f"@inproceedings{{{row.name},\n{lines}\n}}\n")
    return "\n".join(entries).encode()


def _codecheck(runs: Mapping[str, dict]) -> bytes:
    """The papers' artefacts among the runs as the manifest of a CODECHECK."""
    made, manifest = gallery.artefacts(workbook.root(), workbook.out()), []
    kinds = {"figure": "svg", "table": "csv"}
    for row in made[made["run"] != ""].itertuples():
        key, file = f"{row.folder.parent.name}/{row.run}", f"{row.file}.{kinds[row.kind]}"
        if key in runs and file in runs[key]["outputs"]:  # some photographs may not be passed on
            comment = f"{row.paper}, {row.artefact}: {row.title}"
            manifest.append({"file": f"runs/{key}/{file}", "comment": comment})
    papers = _known_citation()["references"]
    authors = [x for paper in papers for x in paper["authors"]]
    about = {"title": "; ".join(paper["title"] for paper in papers)}
    about["authors"] = [{"name": f"{x['given-names']} {x['family-names']}"} for x in authors]
    about["reference"] = papers[0]["url"]
    return _yaml({"version": SPEC, "paper": about, "manifest": manifest})


def _classes(table: pd.DataFrame) -> bytes:
    """Who is known, negative and unknown in a scores table, as csv."""
    rows = table[["class", "role", "group", "label"]].drop_duplicates()
    rows = rows.sort_values(["label", "class"])
    return rows.to_csv(index=False, lineterminator="\n").encode()


def _measured(table: pd.DataFrame, rule: str) -> tuple[dict[str, list[float]], str, list[str]]:
    """Value, low and high of each measure on a table of two roles; the unit drawn; notes.

    Images are drawn where all of a role are of one class.
    """
    from osnb import scores

    columns = {name: column.to_numpy() for name, column in table.items()}
    own = scores.own(columns, names=[rule])._replace(label=columns["label"])
    unit = "class" if table.groupby("role")["class"].nunique().min() > 1 else "sample"
    rows = list(samples.measures([own], unit, seed=0, resamples=1000))
    found = {row["measure"]: [float(row[x]) for x in ("value", "low", "high")] for row in rows}
    return found, unit, samples.unsure(own, unit, rows)


def _listed(found: dict[str, list[float]]) -> list[str]:
    """The measures as a table in Markdown; what is no number is a dash."""
    rows = ["| measure | value | low | high |", "| --- | --- | --- | --- |"]
    for name, numbers in found.items():
        cells = [f"{x:.3f}" if x == x else "-" for x in numbers]
        rows.append(f"| {' | '.join([name, *cells])} |")
    return rows


def _card(key: str, run: dict[str, Any], table: pd.DataFrame, sha256: str) -> bytes:
    """A model card of one training run."""
    from huggingface_hub import EvalResult, ModelCard, ModelCardData

    rules = ("max_softmax_log_odds", "max_softmax", "max_logit")
    rule, columns = next(name for name in rules if name in table), run.get("columns", {})
    tested = {*table["role"]} - {"known"}
    role = "unknown" if "unknown" in tested else "negative"  # as `osnb score` takes them
    pair = table[table["role"].isin(["known", role])]
    found, unit, notes = _measured(pair, rule) if tested else ({}, "", [])
    about = {"task_type": "image-classification", "dataset_type": "osnb"}
    about["dataset_name"] = str(columns.get("benchmark", "unknown"))
    results = []
    for name, numbers in found.items():
        value, *ends = (round(x, 6) for x in numbers)
        ends = {k: x for k, x in zip(("low", "high"), ends, strict=True) if x == x}
        more = {"metric_value": value, "metric_args": {"rule": rule} | ends}
        results += [EvalResult(**about, **more, metric_type=name)] if value == value else []
    known = {"model_name": key, "license": "bsd-3-clause", "tags": ["open-set-recognition"]}
    data = ModelCardData(**known, eval_results=results)
    alone = f"with the parameters in `runs/{key}/run.json`"
    how = f"by `osnb run {run['params']}`" if run["params"] else alone
    filled = {"run": key, "how": how, "sha256": sha256}
    over = {"class": "classes", "sample": "images"}.get(unit)
    said = f"{role.title()} test images against known ones, with 95 % intervals over test {over}"
    lines = [f"{said} ({rule}):\n", *_listed(found), "", *(f"- {note}." for note in notes)]
    said = "\n".join(lines) if tested else "All test images are known."
    filled |= {"protocol": columns.get("benchmark"), "measured": said}
    filled["about"] = ", ".join(f"{name} {value}" for name, value in columns.items())
    card = ModelCard.from_template(data, template_path=CARD, **filled)
    return str(card).encode()


def _croissant(name: str, run: dict[str, Any], classes: bytes) -> bytes:
    """A protocol's list of classes, described by Croissant 1.0."""
    import mlcroissant as ml

    file = f"{name}.csv"
    source = {"content_url": file, "sha256": hashlib.sha256(classes).hexdigest()}
    listed = ml.FileObject(id=file, name=file, encoding_formats=["text/csv"], **source)
    fields = []
    for column in pd.read_csv(io.BytesIO(classes), nrows=0):
        kind = ml.DataType.INTEGER if column == "label" else ml.DataType.TEXT
        where = ml.Source(file_object=file, extract=ml.Extract(column=column))
        known = {"id": f"classes/{column}", "name": column, "source": where}
        fields.append(ml.Field(**known, data_types=[kind]))
    about = {"name": name, "license": [LICENCE], "version": "1.0.0"}
    about["description"] = "Classes of an open-set test: known (label from 0), negative, unknown."
    rows = [ml.RecordSet(id="classes", name="classes", fields=fields)]
    stated = ml.Metadata(**about, distribution=[listed], record_sets=rows).to_json()
    stated["datePublished"] = run["finished"]
    return json.dumps(stated, indent=1, sort_keys=True, default=str).encode() + b"\n"
