"""Params files at the dry run."""

import os
from collections.abc import Iterator

from tests.tries import SPECIAL, command, folder, removed

WHOLE = {
    "run": "bad",
    "benchmark": "p1",
    "method": "softmax",
    "regime": "baseline",
    "size": "mini",
}


def text(**values) -> str:
    """A params file, one line otherwise or more; None leaves a line out."""
    lines = {key: value for key, value in (WHOLE | values).items() if value is not None}
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def nested(levels: int, width: int) -> str:
    """Aliases of aliases: 493 bytes that would be width**levels words."""
    rows = (
        f"a{i}: &a{i} [{','.join([f'*a{i - 1}' if i else 'x'] * width)}]\n" for i in range(levels)
    )
    return "".join(rows)


NO_YAML = {
    "empty": "",
    "a comment": "# x\n",
    "a list": "- a\n",
    "a word": "hello",
    "null": "null\n",
    "zero bytes": b"\0\0\0",
    "utf-16": text().encode("utf-16"),
    "latin-1": text().encode() + b"word: \xe9\n",
    "half a letter": text().encode() + b"\xe2\x82",
    "every byte": bytes(range(256)),
    "aliases": "a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n" + text(),
    "aliases that grow": nested(12, 9) + text(),
    "a merge key of an alias": "x: &x {seed: 1}\n<<: *x\n" + text(),
    "brackets": text() + "x: " + "[" * 20000,
    "closed brackets": text() + "x: " + "[" * 20000 + "]" * 20000,
    "braces": text() + "x: " + "{a: " * 20000,
    "question marks": "? " * 5000,
    "dashes": "- " * 20000,
    "a key of a million letters": "k" * 1_000_000 + ": 1\n" + text(),
    "a line twice": text() + "size: mini\n",
    "an object": text() + "x: !!python/object/apply:os.system ['true']\n",
    "a set": text() + "x: !!set {a, b}\n",
    "a tag": text() + "x: !foo bar\n",
    "tabs": "run:\tbad\n\tx: 1\n",
    "two documents": text() + "---\n" + text(),
    "a directive": "%YAML 9.9\n---\n" + text(),
    "an escape as a key": text() + '"\\e[2Jx": 1\n',
}
SEEDS = {
    "words": "x",
    "below 0": -1,
    "a half": 1.5,
    "nan": ".nan",
    "inf": "1.0e999",
    "yes": "yes",
    "in quotes": "'3'",
    "2^70": 2**70,
    "5,000 digits": "9" * 5000,
    "a date": "2001-01-01",
    "bytes": "!!binary aGk=",
    "null": "~",
    "a list": "[1]",
}
VALUES = {
    "a name that nothing has": {"sed": 1},
    "an escape": {"method": '"\\e[2Jx"'},
    "a lone surrogate": {"overrides": '"\\ud800"'},
    "a run elsewhere": {"run": "../x"},
    "a run of two lines": {"run": '"bad\\nx"'},
    "a run without name": {"run": '""'},
    "no run": {"run": None},
    "a run that is a number": {"run": 3},
    "a run that is a list": {"run": "[bad]"},
    "size": {"size": "huge"},
    "size of a kind": {"size": "{a: 1}"},
    "benchmark": {"benchmark": "p9"},
    "no benchmark": {"benchmark": '""'},
    "method": {"method": "nope"},
    "regime": {"regime": "nope"},
    "split": {"split": -1},
    "a far split": {"split": 99},
    "no devices": {"devices": 0},
    "devices below 0": {"devices": -1},
    "no threads": {"threads": 0},
    "threads below 0": {"threads": -1},
    "machine": {"machine": "fast"},
    "workers of the machine": {"machine": "workers=x"},
    "workers below 0": {"machine": "workers=-1"},
    "colour of the machine": {"machine": "color=3"},
    "resident": {"machine": "resident=7"},
    "a quote": {"data": '"cifar10=\'x"'},
}
OVERRIDES = """
    epochs=-1 epochs=0 epochs=x epochs=1e3 epochs= epochs epochs='3 batch_size=-1 batch_size=0
    learning_rate=-1 learning_rate=nan learning_rate=inf momentum=.9 width=0 features=0 head=nope
    loss=nope loss=os:system loss=nowhere:f loss=../x:f smoothing=2 recalibrated=nope
    network=nope schedule=x precision=float7 augmentation=nope optimizer=nope rules=nope
    watch=nope answer=nope training=nope dropout=3 beta1=2 weight_decay=-1 normalise=x
    train_per_class=-5
""".split()  # noqa: SIM905, a list would be a page
FINE = {  # yaml says so: 5,400 seconds; a mapping laid under this one; the later of two overrides
    "seed 1:30:00": text(seed="1:30:00"),
    "a merge key": "<<: {seed: 1}\n" + text(),
    "an override twice": text(overrides='"epochs=1 epochs=2"'),
    "as it should be": text(),
}


def tries() -> Iterator[tuple[str, str]]:
    file = folder() / "12_palechor_train" / "bad.yaml"
    file.parent.mkdir()
    os.environ["OSNB_OUT"] = str(file.parent.parent / "out")
    cases = dict(NO_YAML)
    cases |= {f"seed: {name}": text(seed=value) for name, value in SEEDS.items()}
    cases |= {name: text(**values) for name, values in VALUES.items()}
    cases |= {f"override {one}": text(overrides=f'"{one}"') for one in OVERRIDES}
    words = ("run", file, "--dry-run")
    for name, content in (cases | FINE).items():
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        yield name, command(words, [file.name], taken=name in FINE)
    for name, make in SPECIAL.items():
        removed(file)
        make(file)
        yield name, command(words, [file.name])
