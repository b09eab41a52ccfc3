"""Batches in which something dies: every run that can be made is made once, and nothing lies."""

import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress

import browser
import psutil
import pyarrow.parquet as pq
import pytest
from conftest import Project
from filelock import Timeout
from test_cli import osnb

from osnb.base.workbook import PACKAGE
from osnb.book import batch, record, run

pytestmark = pytest.mark.slow
RUNS = 3  # with two workers one of them waits for its turn
LONG = 600  # seconds after which a command hangs, however busy the machine is


@pytest.fixture
def several(project):
    """A project with training runs, the first of a second, and a notebook that reads them."""
    return fill(project, RUNS, others=0.05)


def fill(project, count, rate=1.0, others=None):
    """Training runs that take so many seconds; `others`: those behind the first."""
    project.add("takes_time", "10_fixture_train")
    project.add("collects", "11_results")
    project.write("11_results", "run: mini\n", run="mini")
    (project.folder / "params" / "repeats.yaml").write_text("none: {}\n")
    for n in range(count):
        takes = rate if n == 0 or others is None else others
        project.write("10_fixture_train", f"run: r{n}\nseed: {n}\nrate: {takes}\n", run=f"r{n}")
    return project


def lasting(project, *runs):
    """The first attempt at these runs goes on until somebody ends it."""
    book = project.folder / "notebooks" / "10_fixture_train.ipynb"
    lasts = f"time.sleep({LONG * 2} if run in {runs} and not again else rate)"
    book.write_text(book.read_text().replace("time.sleep(rate)", lasts))
    return project


def completed(project):
    """How often each training run came to its end."""
    file = project.folder / "completed.txt"
    return Counter(file.read_text().split() if file.is_file() else [])


def folder(project, n):
    return project.folder / "runs" / "10_fixture_train" / f"r{n}"


def kernel(project, n, seconds=LONG):
    """Pids of the kernel that makes run n, its source and its owner, as soon as it has begun."""
    file = folder(project, n) / "kernel.txt"
    for _ in range(seconds * 20):
        if file.is_file() and len(pids := file.read_text().split()) == 2:
            pids = [*map(int, pids), record.read(file.parent)["pid"]]
            return dict(zip(("kernel", "source", "worker"), pids, strict=True))
        time.sleep(0.05)
    raise AssertionError(f"run {n} did not begin within {seconds} s")


def ended(process, seconds=LONG):
    """(exit code, what it printed) of a started `osnb ... --json -`."""
    out, err = process.communicate(timeout=seconds)
    assert "Traceback" not in err, err
    return process.returncode, json.loads(out)


def again():
    """The same of `osnb reproduce` in this process, one run after another."""
    code, out, _ = osnb("reproduce", "--json", "-")
    return code, json.loads(out)


def all_done(project, count=RUNS, **others):
    """Every run was made once, says so, and the results have read each of them once."""
    assert completed(project) == {f"r{n}": 1 for n in range(count)}
    states = {x["run"]: x["state"] for x in project_runs(project)}
    assert states == {f"r{n}": "done" for n in range(count)} | {"mini": "done"} | others
    for n in range(count):
        assert pq.read_table(folder(project, n) / "scores.parquet")["score"].to_pylist() == [n]
    return True


def project_runs(project):
    files = sorted((project.folder / "runs").glob("*/*/run.json"))
    return [record.read(file.parent) for file in files]


def gone(pids, seconds=LONG):
    """Whether none of the processes is left, soon."""
    there = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            there.append(psutil.Process(pid))
    _, alive = psutil.wait_procs(there, seconds)
    return not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]


def test_a_batch_is_made_once_and_then_skipped_but_for_what_failed(several):
    several.add("raises_in_third_cell", "20_raises")
    several.write("20_raises", "run: bad\n", run="bad")
    code, told = ended(several.start("reproduce", "--workers", 2, "--json", "-"))
    assert (code, told["done"], told["failed"]) == (1, RUNS + 1, 1)
    reasons = {x["notebook"]: x["reason"] for x in told["runs"] if x["state"] == "failed"}
    assert reasons == {"20_raises": "KeyError: 'absent'"}
    assert told["runs"][-1]["run"] == "mini"
    assert all_done(several, bad="failed")
    code, told = again()
    assert (code, told["done"], told["skipped"], told["failed"]) == (1, 0, RUNS + 1, 1)
    assert all_done(several, bad="failed")


def test_a_worker_that_is_killed_costs_no_run(several):
    process = lasting(several, "r0").start("reproduce", "--workers", 2, "--json", "-")
    pids = kernel(several, 0)
    os.kill(pids["worker"], signal.SIGKILL)
    code, told = ended(process)
    assert (code, told["done"], told["failed"]) == (0, RUNS + 1, 0)
    assert all_done(several)
    (before,) = record.read(folder(several, 0))["attempts"]
    assert before["state"] == "interrupted"
    assert gone(pids.values())


STARTS = """
if run in ("r0", "r1") and not again:
    import subprocess
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    (folder / "child.txt").write_text(str(child.pid))
    time.sleep(600)
"""


@pytest.mark.parametrize(("victim", "workers"), [("osnb", 1), ("osnb", 2), ("kernel", 1)])
def test_after_a_kill_nothing_of_a_run_goes_on_or_lies_about(several, tmp_path, victim, workers):
    """Not even what its notebook has started in a session of its own; till then it is locked.

    What the command has left the next one finishes.
    """
    (tmp_path / "temporary").mkdir()
    book = several.folder / "notebooks" / "10_fixture_train.ipynb"
    book.write_text(book.read_text().replace("time.sleep(rate)", json.dumps(STARTS)[1:-1]))
    process = several.start(
        "reproduce", "--workers", workers, env={"TMPDIR": f"{tmp_path}/temporary"}
    )
    begun = [kernel(several, n) for n in range(workers)]
    files = [folder(several, n) / "child.txt" for n in range(workers)]
    while not all(file.is_file() and file.read_text() for file in files):
        assert process.poll() is None
        time.sleep(0.05)
    children = [psutil.Process(int(file.read_text())) for file in files]
    family = [*children, *psutil.Process(process.pid).children(recursive=True)]
    os.kill(process.pid if victim == "osnb" else begun[0]["kernel"], signal.SIGKILL)
    if victim == "kernel":
        assert psutil.wait_procs(children, timeout=600)[1] == []  # a run begins again, alone
    else:
        while not free(several, 0):
            time.sleep(0.01)
        assert not psutil.pid_exists(begun[0]["kernel"])
        assert psutil.wait_procs(family, timeout=600)[1] == []
        assert gone(pid for pids in begun for pid in pids.values())
        assert not [*(tmp_path / "temporary").glob("osnb-*")]
    process.kill()
    process.communicate()
    if workers == 2:
        states = Counter(x["state"] for x in project_runs(several))
        assert states.total() == RUNS + 1
        assert set(states) <= {"interrupted", "done"}
        assert states["interrupted"] >= RUNS - 1
        code, told = again()
        assert (code, told["failed"]) == (0, 0)
        assert all_done(several)


def free(project, n):
    """Whether nobody holds the lock of run n."""
    with suppress(Timeout), record.lock(folder(project, n)):
        return True
    return False


def slowly(project):
    """A batch that two workers do not end, and what `kernel` says of its first run."""
    fill(project, RUNS, rate=LONG * 2.0)
    process = project.start("reproduce", "--workers", 2, "--json", "-", start_new_session=True)
    return process, kernel(project, 0)


@pytest.fixture(scope="module")
def listening(tmp_path_factory):
    """The process of such a batch, the places at which it and its children listen, and the rest."""
    made = Project(tmp_path_factory.mktemp("batch") / "project")
    process, pids = slowly(made)
    try:
        family = [owner := psutil.Process(process.pid), *owner.children(recursive=True)]
        opened = [c for each in family for c in each.net_connections()]
        yield process, {c.laddr for c in opened if c.status == psutil.CONN_LISTEN}, (made, pids)
    finally:
        process.kill()
        process.communicate()


def test_nothing_of_a_batch_listens_beyond_this_machine(listening):
    process, heard, _ = listening
    assert {at.ip for at in heard} == {"127.0.0.1"}
    assert not any(b"pickle" in greeting(*at) for at in heard), "somebody without keys is greeted"
    assert process.poll() is None


ATTACK = """
import asyncio, contextlib, os, sys
from distributed import Security
from distributed.comm import connect

# before it is another user, for whom this folder may be closed; a first try has all modules loaded
ways = ("tcp", Security()), ("tls", Security.temporary())

async def attack(at, scheme, security):
    await connect(f"{scheme}://{at}", timeout=3, **security.get_connection_args("client"))
    print(f"{scheme}://{at} answers", flush=True)

async def main(*addresses):
    with contextlib.suppress(OSError):
        await asyncio.gather(*(attack("127.0.0.1:1", *way) for way in ways))
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
    tries = [asyncio.create_task(attack(at, *way)) for at in addresses for way in ways]
    await asyncio.wait(tries, timeout=10)
    os._exit(0)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.skipif(os.geteuid() > 0, reason="only root can become another user")
def test_another_user_of_the_machine_cannot_talk_to_a_batch(listening):
    process, heard, _ = listening
    command = [sys.executable, "-c", ATTACK, *(f"{at.ip}:{at.port}" for at in heard)]
    answers = subprocess.run(command, check=True, capture_output=True, timeout=LONG).stdout
    assert heard
    assert process.poll() is None
    assert answers == b""


TAKES = """
import os, tempfile

def told(word, **_):
    with open(os.environ["TAKEN"], "a") as file:
        print(word, file=file)

told("begins")
tempfile.TemporaryDirectory = lambda **_: told("takes")
"""


def test_keys_of_a_batch_are_its_owner_s_alone_and_leave_nothing(monkeypatch, tmp_path):
    monkeypatch.setenv("OSNB_OUT", str(tmp_path))
    place = tmp_path / "runs" / ".keys"
    of_killed = place / f"{platform.node()}-{2**22 + 1}"  # beyond the numbers that Linux gives
    elsewhere = place / "another.machine-1"
    alike = place / f"{platform.node()}-2-{2**22 + 1}"  # of a machine of such a name
    for folder in (of_killed, elsewhere, alike):
        folder.mkdir(parents=True)
    (tmp_path / "sitecustomize.py").write_text(TAKES)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TAKEN", str(tmp_path / "taken.txt"))
    taken = []  # by dask: it writes keys that it has in memory alone to the temporary folder
    monkeypatch.setattr("tempfile.TemporaryDirectory", lambda **_: taken.append("here"))
    with batch.local(1):
        assert {each.name for each in place.iterdir()} == {
            elsewhere.name,
            alike.name,
            f"{platform.node()}-{os.getpid()}",
        }
        own = place / f"{platform.node()}-{os.getpid()}"
        assert own.stat().st_mode & 0o777 == 0o700
        assert (own / "key.pem").read_text().startswith("-----BEGIN PRIVATE KEY")
    assert {*place.iterdir()} == {elsewhere, alike}
    assert not taken
    assert {*(tmp_path / "taken.txt").read_text().split()} == {"begins"}  # of its workers


def greeting(ip, port):
    """What a listener says to whoever connects and sends nothing; dask without keys: its pickle."""
    with suppress(OSError), socket.create_connection((ip, port), timeout=5) as connection:
        connection.settimeout(1)
        return connection.recv(10_000)
    return b""


def test_an_interrupt_of_workers_says_so_and_leaves_no_process(listening):
    process, _, (made, pids) = listening  # whose last test this is
    stops(signal.SIGINT, process, made, pids)


def test_a_hang_up_of_workers_says_so_and_leaves_no_process(several):
    process, pids = slowly(several)
    stops(signal.SIGHUP, process, several, pids)


def stops(sign, process, project, pids):
    """A batch ends on a signal, and says so of itself and of its runs."""
    os.killpg(process.pid, sign)  # as a terminal does: to every process of the group
    out, err = process.communicate(timeout=LONG)
    assert process.returncode == 130
    assert err.endswith("osnb: interrupted; the same command continues\n")
    told = json.loads(out)
    assert told["interrupted"] >= 1
    assert told["interrupted"] + told["not begun"] == len(told["runs"]) == RUNS + 1
    assert gone(pids.values())
    states = {x["run"]: x["state"] for x in project_runs(project)}
    assert states["r0"] == "interrupted"
    assert set(states.values()) <= {"interrupted", "done"}


def test_two_commands_at_once_share_the_work(several):
    words = ("reproduce", "--json", "-")
    both = [several.start(*words), several.start(*words)]
    told = [ended(process) for process in both]
    assert [code for code, _ in told] == [0, 0]
    assert sum(each["done"] for _, each in told) >= RUNS + 1  # a result may be drawn twice
    assert all_done(several)


def test_who_holds_a_run_is_told_with_its_age(several):
    book = several.folder / "notebooks" / "10_fixture_train.ipynb"
    until = f"[time.sleep(0.05) for _ in range({LONG * 20}) if not (out / 'told').exists()]"
    book.write_text(book.read_text().replace("time.sleep(rate)", until))
    words = ("run", "params/10_fixture_train/r0.yaml")
    first = several.start(*words)
    kernel(several, 0)
    second = several.start(*words)
    told = second.stdout.readline()
    assert f"waits: process {first.pid} on {os.uname().nodename} is making it since 20" in told
    (several.folder / "told").touch()
    assert "skipped, up to date" in second.communicate(timeout=LONG)[0]
    first.communicate(timeout=LONG)
    assert (first.returncode, second.returncode) == (0, 0)


def test_a_worker_makes_the_others_while_another_process_holds_a_run(several):
    with record.lock(folder(several, 0)):
        process = several.start("run", "params/10_fixture_train", "--workers", 1, "--json", "-")
        for _ in range(LONG * 20):
            if completed(several).total() == RUNS - 1 or process.poll() is not None:
                break
            time.sleep(0.05)
        assert process.poll() is None
        assert completed(several) == {f"r{n}": 1 for n in range(1, RUNS)}
    code, told = ended(process)
    assert (code, told["done"], told["runs"][-1]["run"]) == (0, RUNS, "r0")


def test_a_time_limit_reaches_every_run_here_and_in_a_worker(several, monkeypatch):
    limits = []

    def execute(plan, *, limit):
        limits.append(limit)
        return {"state": "failed", "error": {"name": "TimeLimit", "value": "", "cell": 4}}

    class Client:
        def register_plugin(self, plugin):
            pass

        def map(self, work, *sent, key, pure, **how):
            ends = [work(*each, **how) for each in zip(*sent, strict=True)]
            raise InterruptedError([end["state"] for end in ends])

    monkeypatch.setattr(run.execution, "execute", execute)
    files = sorted((several.folder / "params" / "10_fixture_train").glob("*.yaml"))
    assert osnb("run", *files, "--time-limit", 4)[0] == 1
    with pytest.raises(InterruptedError, match="'failed', 'failed', 'failed'"):
        next(batch.carry_out(map(run.plan, files), spread=batch.over(Client()), limit=5))
    assert limits == [4] * RUNS + [5] * RUNS


@contextmanager
def small_disk(path, size):
    """A file system of so many bytes at `path`, where the machine allows it."""
    path.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)]
    if not shutil.which("mount") or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("no file system can be mounted here: the test of a full disk needs root")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def test_on_a_full_disk_runs_fail_and_are_made_once_there_is_space(project, tmp_path, monkeypatch):
    fill(project, 2, rate=0.1)
    with small_disk(tmp_path / "disk", 400_000) as disk:
        filler = disk / "filler"
        filler.write_bytes(b"0" * 340_000)
        monkeypatch.setenv("OSNB_OUT", str(disk))
        process = project.start("reproduce", "--json", "-", env={"OSNB_OUT": str(disk)})
        code, told = ended(process)
        assert code == 1
        assert told["done"] + told["failed"] == 3
        assert told["failed"] >= 1
        done = {x["run"] for x in told["runs"] if x["state"] == "done"}
        states = {f.parent.name: record.read(f.parent) for f in disk.glob("runs/*/*/run.json")}
        assert {name for name, x in states.items() if x and x["state"] == "done"} == done
        filler.unlink()
        code, told = again()
        assert (code, told["failed"]) == (0, 0)
        assert Counter((disk / "completed.txt").read_text().split())["r0"] >= 1


# Schedulers that somebody started


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """A folder with the three files that osnb/docs/operations.md says how to make."""
    made = tmp_path_factory.mktemp("tls")
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the certificates of this test, and is not here")
    for line in readme_lines("openssl"):
        subprocess.run(line, shell=True, check=True, capture_output=True, cwd=made)
    return made


def readme_lines(word):
    """The commands of osnb/docs/operations.md that begin with a word, continued lines joined."""
    from osnb.base.workbook import PACKAGE

    text = (PACKAGE / "docs" / "operations.md").read_text().replace("\\\n", " ")
    return [line for line in text.splitlines() if line.startswith(word)]


class Dask:
    """A scheduler and workers, each a process of its own, as a person would start them."""

    def __init__(self, project, tls=None):
        self.project, self.processes, self.address = project, [], None
        self.tls = []
        if tls:
            pairs = {"ca-file": "ca.pem", "cert": "cert.pem", "key": "key.pem"}
            self.tls = [x for k, name in pairs.items() for x in (f"--tls-{k}", tls / name)]

    def start(self, *words, before=()):
        command = [*before, sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]]
        return self.process(words[0], *command, *self.tls)

    def process(self, name, *command):
        with (self.project.folder / f"{name}.log").open("a") as log:
            process = subprocess.Popen(
                [*map(str, command)],
                env=self.project.environment(**QUICK),
                cwd=self.project.folder,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def scheduler(self, host="127.0.0.1", port=0, before=()):
        port = port or browser.free_port()
        scheme = "tls" if self.tls else "tcp"
        self.address = f"{scheme}://{host}:{port}"
        words = ("scheduler", "--host", f"{scheme}://{host}", "--port", port, "--no-dashboard")
        return self.start(*words, before=before)

    def worker(self, *words, before=()):
        more = ("--nthreads", 1, "--no-dashboard", "--memory-limit", 0)
        return self.start("worker", self.address, *more, *words, before=before)

    def job(self, tls):
        """A worker as Slurm starts it."""
        if not (environment := self.project.folder / ".venv").exists():
            environment.symlink_to(sys.prefix)
        script = PACKAGE.parent / "params" / "worker.sbatch"
        return self.process("job", "bash", script, self.address, tls)

    def stop(self):
        for process in self.processes:
            process.kill()  # a worker whose scheduler is gone takes its time to end
            process.wait()


QUICK = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "12s",  # ten probes, a second apart, and two
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s",
}


@pytest.fixture
def dask(several, certificates):
    made = Dask(several, certificates)
    yield made
    made.stop()


def test_a_run_of_a_job_of_slurm_that_ends_is_finished_by_the_next(several, dask, certificates):
    lasting(several, "r0")
    dask.scheduler()
    victim = dask.job(certificates)
    words = ("--scheduler", dask.address, "--tls", certificates, "--json", "-")
    process = several.start("reproduce", *words)
    pids = kernel(several, 0)
    open_ = [x.laddr for x in psutil.Process(victim.pid).net_connections() if x.status == "LISTEN"]
    ports = {x.port for x in open_ if x.ip != "127.0.0.1"}
    assert len(ports) == 1, open_  # for tasks, over TLS; dask's web page would be another
    victim.terminate()  # as at its walltime
    victim.wait(LONG)
    dask.job(certificates)
    code, told = ended(process)
    assert (code, told["done"], told["failed"]) == (0, RUNS + 1, 0)
    assert all_done(several)
    (before,) = record.read(folder(several, 0))["attempts"]
    assert (before["state"], before["pid"]) == ("interrupted", pids["worker"])


def test_when_the_scheduler_is_killed_the_command_fails_and_the_next_one_finishes(
    several, dask, certificates
):
    lasting(several, "r0")
    scheduler = dask.scheduler()
    dask.worker("--no-nanny")
    words = ("--scheduler", dask.address, "--tls", certificates, "--json", "-")
    process = several.start("reproduce", *words)
    kernel(several, 0)
    scheduler.kill()
    code, told = ended(process)
    assert code == 1
    assert told["failed"] >= RUNS
    assert "the scheduler is gone" in told["runs"][-2]["reason"]
    dask.stop()
    code, told = again()
    assert (code, told["failed"]) == (0, 0)
    assert all_done(several)


class Hosts:
    """Two hosts on this machine: network namespaces, each with a wire to this one."""

    def __init__(self):
        self.names = {letter: f"osnb{os.getpid()}{letter}" for letter in "ab"}
        self.address = {"a": "10.98.1", "b": "10.98.2"}

    def __enter__(self):
        for letter, name in self.names.items():
            net, wire = self.address[letter], f"w{os.getpid()}{letter}"
            for line in (
                f"ip netns add {name}",
                f"ip link add {wire} type veth peer name inside netns {name}",
                f"ip addr add {net}.1/24 dev {wire}",
                f"ip link set {wire} up",
                f"ip -n {name} addr add {net}.2/24 dev inside",
                f"ip -n {name} link set inside up",
                f"ip -n {name} link set lo up",
                f"ip -n {name} route add default via {net}.1",
            ):
                if subprocess.run(line.split(), capture_output=True).returncode:
                    self.__exit__()
                    pytest.skip(f"no hosts apart on this machine: '{line}' needs root and iproute2")
        return self

    def on(self, letter):
        """What to put before a command that runs on a host."""
        return ("ip", "netns", "exec", self.names[letter])

    def cut(self, letter):
        """Pull the wire of a host: nothing is said, packets just stop."""
        subprocess.run(f"ip link set w{os.getpid()}{letter} down".split(), check=True)

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


@pytest.mark.skipif(not shutil.which("ip"), reason="no iproute2: no hosts apart on this machine")
def test_the_runs_of_a_host_that_is_cut_off_are_finished_elsewhere(several, dask, certificates):
    lasting(fill(several, 1), "r0")  # until the host sees that it is alone
    with Hosts() as hosts:
        dask.scheduler(host="10.98.1.1")
        dask.worker("--no-nanny", before=hosts.on("a"))
        words = ("--scheduler", dask.address, "--tls", certificates, "--json", "-")
        process = several.start("reproduce", *words)
        pids = kernel(several, 0)
        dask.worker("--no-nanny", before=hosts.on("b"))
        hosts.cut("a")
        code, told = ended(process)
        assert (code, told["done"], told["failed"]) == (0, RUNS + 1, 0)
        assert gone(pids.values())  # the host that was cut off has ended its run by itself
        (before,) = record.read(folder(several, 0))["attempts"]
        assert (before["state"], before["pid"]) == ("interrupted", pids["worker"])
        assert all_done(several)


def refused(*words, reason):
    """`osnb WORDS` ends with 2 and one sentence."""
    code, out, err = osnb(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


def test_every_worker_sees_one_gpu_and_its_share_of_the_cores(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    cores = len(os.sched_getaffinity(0))
    assert batch.environment(0, 1) == {"OMP_NUM_THREADS": str(cores)}
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho GPU one\necho GPU two\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    seen = [batch.environment(n, 3)["CUDA_VISIBLE_DEVICES"] for n in range(3)]
    assert seen == ["0", "1", "0"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
    assert batch.environment(1, 2)["CUDA_VISIBLE_DEVICES"] == "7"
    assert batch.visible() == ["5", "7"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # hidden, all of them
    assert (batch.visible(), batch.environment(0, 2).keys()) == ([], {"OMP_NUM_THREADS"})


def test_runs_that_share_their_batches_among_devices_are_not_spread(several):
    several.add("several_devices", "12_shares_train")
    file = several.write("12_shares_train", "run: small\ndevices: 2\n")
    refused("run", file, "--workers", 2, reason="12_shares_train/small uses several devices by")


def test_a_run_that_shares_its_batches_among_devices_is_not_spread_over_the_gpus_either(
    several, monkeypatch
):
    several.add("several_devices", "12_shares_train")
    plan = run.plan(several.write("12_shares_train", "run: small\ndevices: 2\n"))
    monkeypatch.setattr(record, "gpus", lambda: ["GPU"] * 4)
    monkeypatch.setattr(batch, "local", lambda workers: pytest.fail(f"spread over {workers}"))
    with batch.engine([plan]) as spread:
        assert spread.func is batch.serially


def test_a_worker_with_other_code_or_another_folder_is_refused(project):
    project.add("works", "90_works")
    plan = run.plan(project.write("90_works", "run: small\n"))
    sent = {"notebook": plan.notebook, "run": plan.run}
    sent |= {"parameters": plan.parameters, "given": plan.given}
    options = {"force": False, "limit": 0}
    end = batch.work(sent, "0" * 64, str(project.folder), 1, **options)
    assert "has other code in" in end["error"]["value"]
    end = batch.work(sent, plan.code(), "/elsewhere", 1, **options)
    assert "start it with OSNB_OUT=/elsewhere" in end["error"]["value"]
    assert not plan.directory.exists()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--scheduler", "tcp://10.0.0.1:8786"), "must be started with TLS, tls://"),
        (("--scheduler", "10.0.0.1:8786"), "is tls://HOST:PORT; got '10.0.0.1:8786'"),
        (("--scheduler", "tls://127.0.0.1:1", "--tls", "."), "it lacks ca.pem, cert.pem, key.pem"),
        (("--scheduler", "tls://127.0.0.1:1", "--workers", 2), "got --workers and --scheduler"),
        (("--scheduler", "tls://127.0.0.1:1"), "needs --tls FOLDER with ca.pem, cert.pem, key.pem"),
        (("--tls", "."), "--tls goes with --scheduler"),
    ],
)
def test_engines_that_cannot_be_are_refused(several, monkeypatch, words, reason):
    monkeypatch.chdir(several.folder)
    for more in ((), ("--dry-run",)):
        refused("reproduce", *words, *more, reason=reason)
    assert not (several.folder / "runs").exists()


def test_workers_that_do_not_start_are_told_in_a_sentence(monkeypatch):
    def cluster(*_, **__):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("distributed.LocalCluster", cluster)
    again = r"Nanny failed to start\. Try again: the same command continues"
    with pytest.raises(ConnectionError, match=again), batch.local(2):
        pass
