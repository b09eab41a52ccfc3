"""Builds the file that `osnb.hierarchy` reads from WordNet 3.0: `osnb data wordnet`."""

import lzma
import re
from pathlib import Path

from osnb.repro import writing

HYPERNYMS = ("@", "@i")  # wninput(5WN): is a kind of, is an instance of


def build(path: Path, *, folder: Path | None = None) -> None:
    """Write WordNet's noun hierarchy, one line a synset: `wnid, lemmas, hypernyms`.

    Tabs stand between fields, spaces within them, and xz packs the whole. Everything keeps
    the order of WordNet's data file: NLTK's `hypernyms()` come from a set, whose order
    follows PYTHONHASHSEED, so NLTK finds, opens and decodes the corpus, and its lines are
    read here.

    Args:
        path: the file to write, aside and renamed.
        folder: where WordNet's dict files are, data.noun among them; None: NLTK's corpus.

    Raises:
        FileNotFoundError: there is no corpus; the message says how to get it.
        ValueError: the corpus is not version 3.0, whose offsets are ImageNet's ids.
    """
    lines = _data_noun(folder).splitlines()
    header = "\n".join(line for line in lines if line.startswith("  "))
    version = re.search(r"WordNet (\S+) Copyright", header)
    if not version or version[1] != "3.0":
        raise ValueError(f"need WordNet 3.0; got {version[1] if version else 'no version'}")
    text = "".join(_row(line) for line in lines if not line.startswith("  "))
    with writing(path) as aside:
        aside.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def _data_noun(folder: Path | None) -> str:
    if folder is not None:
        return (Path(folder) / "data.noun").read_text(encoding="utf8")
    from nltk.corpus import LazyCorpusLoader
    from nltk.corpus.reader import CorpusReader

    try:
        return LazyCorpusLoader("wordnet", CorpusReader, ["data.noun"]).raw("data.noun")
    except (LookupError, OSError) as error:
        raise FileNotFoundError(
            "NLTK has no corpus 'wordnet': with a network, run "
            "python -c \"import nltk; nltk.download('wordnet')\"; without one, install Debian's "
            "package wordnet-base and pass --wordnet /usr/share/wordnet, or any folder with "
            "WordNet 3.0's data.noun"
        ) from error


def _row(line: str) -> str:
    """One line of the packed file from one line of data.noun, whose format is wndb(5WN)."""
    offset, _, _, count, *fields = line.split(" | ")[0].split()
    end = 2 * int(count, 16)  # words, each with a number; then the pointers and their count
    pointers = fields[end + 1 :]  # by fours: symbol, offset, part of speech, words
    above = zip(pointers[::4], pointers[1::4], strict=True)
    hypernyms = " ".join(f"n{target}" for symbol, target in above if symbol in HYPERNYMS)
    return f"n{offset}\t{' '.join(fields[:end:2])}\t{hypernyms}\n"
