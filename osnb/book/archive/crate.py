"""The archive described as an RO-Crate 1.1: what each file is, what made it, from what, when."""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from osnb.book.archive.checking import LOCK, MANIFEST

LICENCE = "https://spdx.org/licenses/BSD-3-Clause"
DATA = (
    "The code (notebooks, params) is under BSD-3-Clause. The runs are numbers and drawings that "
    "it computed: scores, histories, tables and figures. Images and data sets are not included."
)
PAPERS = {  # by the tens digit of their notebooks
    "1": ("palechor2023", "Large-Scale Open-Set Classification Protocols for ImageNet"),
    "2": ("vaze2022", "Open-Set Recognition: a Good Closed-Set Classifier is All You Need?"),
    "3": (
        "kim2021",
        "A Unified Benchmark for the Unknown Detection Capability of Deep Neural Networks",
    ),
}
FORMATS = {
    ".ipynb": "application/x-ipynb+json",
    ".parquet": "application/vnd.apache.parquet",
    ".yaml": "application/yaml",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".csv": "text/csv",
    ".tex": "application/x-tex",
}


def described(runs: Mapping[str, dict], files: Mapping[str, tuple[int, str]]) -> bytes:
    """The content of ro-crate-metadata.json; equal arguments give equal bytes.

    Args:
        runs: by NOTEBOOK/RUN content of run.json, `params`, the params file's member or none, and
            `data`, the digest by which others name it among their inputs.
        files: bytes and sha256 of every other member but the manifest, by name.
    """
    from rocrate.rocrate import ROCrate

    crate = ROCrate(version="1.1")
    crate.metadata.extra_terms["sha256"] = "https://schema.org/sha256"  # 1.1 lacks it
    kept = {name: _file(crate, name, *known) for name, known in files.items()}
    crate.add_file(dest_path=MANIFEST, properties={"description": "for sha256sum -c"})
    papers = sorted({PAPERS[key[0]] for key in runs if key[0] in PAPERS})
    root = crate.root_dataset
    root["name"] = f"Finished runs of osnb: {', '.join(name for name, _ in papers) or 'lessons'}"
    root["description"] = f"{len(runs)} runs of an open-set recognition workbook. {DATA}"
    root["datePublished"] = max(run["finished"] for run in runs.values())
    root["license"] = _about(crate, LICENCE, "CreativeWork", name="BSD 3-Clause", description=DATA)
    root["citation"] = [
        _about(crate, f"#{name}", "ScholarlyArticle", name=title) for name, title in papers
    ]
    root["mentions"] = [_action(crate, key, runs, kept) for key in runs]
    _software(crate, runs, kept)
    return json.dumps(crate.metadata.generate(), indent=1, sort_keys=True).encode() + b"\n"


def _about(crate, identifier: str, kind: str, **properties: str):
    known = crate.get(identifier)
    return known or crate.add_jsonld({"@id": identifier, "@type": kind} | properties)


def _file(crate, name: str, size: int, sha256: str):
    kind = FORMATS.get(PurePosixPath(name).suffix, "text/plain")
    known = {"contentSize": str(size), "sha256": sha256, "encodingFormat": kind}
    if name.startswith("notebooks/"):
        known |= {"@type": ["File", "SoftwareSourceCode"], "programmingLanguage": "Python"}
    if name == LOCK:
        known["description"] = "Every package with its version, for pip"
    return crate.add_file(dest_path=name, properties=known | {"name": name})


def _action(crate, key: str, runs: Mapping[str, dict], kept: Mapping[str, Any]):
    """The execution of a notebook that made a run, from its params file and other runs' scores."""
    run = runs[key]
    results = [file for name, file in kept.items() if name.startswith(f"runs/{key}/")]
    scores = {each["data"]: f"runs/{name}/scores.parquet" for name, each in runs.items()}
    read = [run["params"], *(scores.get(digest) for digest in run["inputs"].values())]
    objects = [kept[name] for name in read if name]
    about = {
        "name": f"execution of {key}",
        "description": f"code {run['code']}, commit {run.get('commit')}",
        "startTime": run["started"],
        "endTime": run["finished"],
        "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
    }
    notebook = kept[f"notebooks/{run['notebook']}.ipynb"]
    return crate.add_action(notebook, f"#{key}", object=objects, result=results, properties=about)


def _software(crate, runs: Mapping[str, dict], kept: Mapping[str, Any]) -> None:
    """Python and the packages with which each notebook's runs were made."""
    for name in sorted({run["notebook"] for run in runs.values()}):
        own = [run for run in runs.values() if run["notebook"] == name]
        used = {pair for x in own for pair in {"python": x["python"], **x["packages"]}.items()}
        kept[f"notebooks/{name}.ipynb"]["softwareRequirements"] = [
            _about(crate, f"#{x}-{version}", "SoftwareApplication", name=x, softwareVersion=version)
            for x, version in sorted(used)
        ]
