"""Time and memory of all metrics of one scores column."""

import datetime
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import median

from tests.benchmarks.candidates import CANDIDATES, OURS, SORT, Call, Sample, draw, expected
from tests.benchmarks.stopwatch import Clock, interleaved, machine, versions

ROWS = 10_000, 100_000, 1_000_000
SAMPLES, RESAMPLES = 15_000, 1_000  # of the bootstrap
QUANTITIES = 10  # of `summary`; the accuracy needs no sort and is not counted
TOLERANCE = 1e-6  # of values; some libraries divide in float32
NOT_INSTALLED = "not installed"


def compare(
    rows: Iterable[int],
    *,
    repeats: int = 5,
    budget: float = 60.0,
    candidates: Mapping[str, Callable[[Sample], Call]] = CANDIDATES,
    clock: Clock = time.perf_counter,
) -> dict:
    """Check that all candidates agree, then time them side by side.

    Args:
        rows: sizes of the samples.
        repeats: rounds, each of which times every candidate.
        budget: seconds; skipped is what takes more in one call, or would in proportion to the
            size before.
        candidates: SORT and OURS among them, which the budget has to allow.
        clock: gives seconds.

    Returns:
        The settings, the machine, and `lines` of rows, what, and skipped or computes, deviation
        (the largest), seconds (median), to_sort and to_ours (medians of the rounds' ratios).

    Raises:
        ValueError: a candidate's value is not the expected one.
    """
    lines, pace = [], {}
    for size in sorted(rows):
        found, calls = _checked(draw(size), candidates, pace, budget, clock)
        seconds = interleaved(calls, repeats=repeats, clock=clock)
        for name, line in found.items():
            if name in seconds:
                line |= _compared(name, seconds)
                pace[name] = line["seconds"] / size
            lines.append({"rows": size, "what": name, **line})
    settings = {"repeats": repeats, "budget": budget, "date": f"{datetime.date.today()}"}
    drawn = {"bootstrap": bootstrap(clock), "versions": versions(candidates), "lines": lines}
    return settings | machine() | drawn


def bootstrap(clock: Clock) -> dict[str, float]:
    """Seconds of RESAMPLES resamples of SAMPLES samples, their drawing included."""
    from osnb import metrics

    sample, start = draw(SAMPLES), clock()
    weights = tuple(
        metrics.bootstrap_weights(range(len(scores)), seed=seed, resamples=RESAMPLES)
        for seed, scores in enumerate((sample.known, sample.unknown))
    )
    metrics.bootstrap_summary(*sample, weights=weights)
    return {"samples": SAMPLES, "resamples": RESAMPLES, "seconds": clock() - start}


def _checked(
    sample: Sample, candidates: Mapping, pace: dict[str, float], budget: float, clock: Clock
) -> tuple[dict[str, dict], dict[str, Call]]:
    """By name: why a candidate is skipped, or what it computes; the calls of those to be timed."""
    truth, found, calls = expected(sample), {}, {}
    rows = len(sample.known) + len(sample.unknown)
    for name, ready in candidates.items():
        found[name] = {"skipped": f"too slow: over {budget:g} s"}
        if pace.get(name, 0) * rows > budget:
            continue
        try:
            call = ready(sample)
        except ImportError:
            found[name] = {"skipped": NOT_INSTALLED}
            continue
        start = clock()
        values = call()
        pace[name] = (clock() - start) / rows
        if pace[name] * rows <= budget:
            found[name], calls[name] = {}, call
        found[name] |= {"computes": list(values), "deviation": deviation(name, values, truth)}
    return found, calls


def deviation(name: str, values: Mapping[str, float], truth: Mapping[str, float]) -> float:
    """The largest distance of a candidate's values from the truth, at most TOLERANCE."""
    for key, value in values.items():
        if not abs(value - truth[key]) <= TOLERANCE:  # nor NaN
            raise ValueError(f"{name} finds {key} = {value}; needed is {truth[key]}")
    return float(max((abs(value - truth[key]) for key, value in values.items()), default=0))


def _compared(name: str, seconds: Mapping[str, list[float]]) -> dict[str, float]:
    """Median seconds, and the medians of the ratios within each round."""
    mine = seconds[name]
    found = {"seconds": median(mine)}
    for key, base in {"to_sort": SORT, "to_ours": OURS}.items():
        found[key] = median(a / b for a, b in zip(mine, seconds[base], strict=True))
    return found


def memory(rows: int, *, kind: str) -> dict:
    """What `once` finds in a process of its own, where nothing else has used memory."""
    code = "import json, sys; from tests.benchmarks.metrics import once; "
    code += "print(json.dumps(once(int(sys.argv[1]), kind=sys.argv[2])))"
    command = [sys.executable, "-c", code, str(rows), kind]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        why = done.stderr.strip().rpartition("\n")[2] or "killed, perhaps for want of memory"
        raise ChildProcessError(f"{rows:,} rows of {kind} ended with {done.returncode}: {why}")
    return json.loads(done.stdout)


def once(rows: int, *, kind: str) -> dict:
    """Seconds of one `summary`, and bytes: of its inputs, and at the peak of this process."""
    from osnb import metrics

    sample = draw(rows, kind)
    start = time.perf_counter()
    metrics.summary(*sample)
    seconds, inputs = time.perf_counter() - start, sum(column.nbytes for column in sample)
    status = Path("/proc/self/status").read_text()  # of Linux
    peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
    return {"rows": rows, "kind": kind, "seconds": seconds, "inputs": inputs, "peak": peak}


def show(report: Mapping) -> list:
    """What rich prints for a report of `compare`."""
    lines, values = report["lines"], {}
    for line in lines:
        values.setdefault(", ".join(line.get("computes", [])), {})[line["what"]] = None
    missing = {line["what"]: None for line in lines if line.get("skipped") == NOT_INSTALLED}
    tools = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    drawn = "bootstrap_summary: {resamples:,} resamples of {samples:,} samples in {seconds:.2f} s"
    return [
        _table(lines),
        drawn.format(**report["bootstrap"]),
        *(f"{name} is not installed: pip install '{name}'" for name in missing),
        f"/ sort, / ours: medians of the ratios of {report['repeats']} rounds to {SORT} and to "
        f"{OURS}. A library is timed on what it computes, its input made ready before.",
        f"values agree with ours to {max(line.get('deviation', 0) for line in lines):.0e}:",
        *(f"  {', '.join(names)}: {found}" for found, names in values.items() if found),
        f"{report['cpu']}, {report['cores']} cores, {report['gib']} GiB, threads "
        f"{report['threads']}; {tools}; {report['date']}",
    ]


def _table(lines: Iterable[Mapping]):
    from rich.table import Column, Table

    heads = ("computes", "time", "/ sort", "/ ours")
    heads = [Column("rows", justify="right"), "what", *(Column(x, justify="right") for x in heads)]
    table = Table(*heads, box=None)
    for line in lines:
        table.add_row(f"{line['rows']:,}", line["what"], *_cells(line))
    return table


def _cells(line: Mapping) -> list[str]:
    if "skipped" in line:
        return ["", line["skipped"]]
    count = len(set(line["computes"]) - {"accuracy"})
    ratios = [f"{line[key]:.2f}" for key in ("to_sort", "to_ours")]
    return [f"{count} of {QUANTITIES}", f"{1000 * line['seconds']:,.3f} ms", *ratios]


def show_memory(found: Mapping) -> list[str]:
    """What is printed for `memory`."""
    inputs, peak = (f"{found[key] / 2**30:.2f} GiB" for key in ("inputs", "peak"))
    what = f"summary of {found['rows']:,} rows of {found['kind']}: {found['seconds']:.2f} s"
    return [f"{what}, peak {peak}; its inputs alone take {inputs}"]
