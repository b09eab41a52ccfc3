"""What counts in one term: questions with numbers, seeds and orders drawn from the term's secret.

A question of `bank.yaml` and the secret give, for each learner, other numbers, four options in
another order, and the answer, computed. Without the secret nothing says which letter is right but
the question itself. The exam shows the same questions open, with their rubric.
"""

import hmac
import re
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np
import pandas as pd
import yaml

from osnb import metrics

HERE = Path(__file__).parent
SHORTEST = 12  # signs of a secret: who has a quiz can try shorter ones
TRIES = 1000  # draws of a question until its four options differ
SEEDS = re.compile(r"\bseed=\d+")  # in hidden tests
LETTERS = "abcd"
EARLIER = 2  # questions of earlier sessions in a quiz


class Question(NamedTuple):
    """A question as it is asked once.

    Attributes:
        name: in the bank.
        ask: its text.
        answer: the number that is right, as text; "" if it asks for words.
        options: four numbers as texts, in the order shown, each with its reason; or none.
        rubric: (points, for what).
    """

    name: str
    ask: str
    answer: str
    options: list[tuple[str, str]]
    rubric: list[tuple[int, str]]

    @property
    def letter(self) -> str:
        """Of the right option."""
        return LETTERS[[text for text, _ in self.options].index(self.answer)]


@cache
def bank() -> list[dict[str, Any]]:
    """All questions, as `bank.yaml` has them.

    Raises:
        FileNotFoundError: this is a students' copy, which goes without.
    """
    if not (HERE / "bank.yaml").is_file():
        raise FileNotFoundError("a students' copy has no bank of questions: use the lecturer's")
    return yaml.safe_load((HERE / "bank.yaml").read_text(encoding="utf8"))


def derived(secret: str, *names: object) -> str:
    """A secret for one use, which tells nothing about that of another one.

    Raises:
        ValueError: the term's secret is so short that it can be tried out.
    """
    if len(secret) < SHORTEST:
        make = "python3 -c 'import secrets; print(secrets.token_hex(16))'"
        raise ValueError(f"a term's secret has {SHORTEST} signs or more; this makes one: {make}")
    return hmac.new(secret.encode(), repr(names).encode(), "sha256").hexdigest()


def question(entry: dict[str, Any], secret: str) -> Question:
    """A question of the bank with its numbers and the order of its options.

    Raises:
        ValueError: no draw makes the options differ.
    """
    for attempt in range(TRIES):
        rng = np.random.default_rng(int(derived(secret, entry["name"], attempt), 16))
        given = _drawn(entry.get("given", {}), rng)
        wrong = entry.get("wrong", [])
        formulas = [entry["answer"], *(x["of"] for x in wrong)] if wrong else []
        # + 0 turns a rounded -0.0 into 0.0
        values = [round(float(_value(x, given)), 6) + 0.0 for x in formulas]
        shown = [entry.get("format", "{:.3f}").format(value) for value in values]
        if len({*shown}) == len(shown):
            break
    else:
        raise ValueError(f"{entry['name']}: no draw of {TRIES} has four options that differ")
    given["answer"] = shown[0] if shown else ""
    reasons = [entry["because"], *(x["why"] for x in wrong)] if wrong else []
    options = list(zip(shown, (_text(reason, given) for reason in reasons), strict=True))
    rubric = [(points, _text(what, given)) for points, what in entry["rubric"]]
    options = [options[i] for i in rng.permutation(len(options))]
    return Question(entry["name"], _text(entry["ask"], given), given["answer"], options, rubric)


def quiz(secret: str, session: int, learner: str) -> list[Question]:
    """A learner's questions of one session: those that ask for a number, and some of before.

    Args:
        secret: `derived` from the term's for that session.
        session: counted from 1.
        learner: as nbgrader calls them.
    """
    mine = derived(secret, learner)
    numbers = [entry for entry in bank() if "answer" in entry]
    before = [entry for entry in numbers if entry["session"] < session]
    rng = np.random.default_rng(int(derived(mine, "before"), 16))
    earlier = [before[i] for i in rng.permutation(len(before))[:EARLIER]]
    asked = [entry for entry in numbers if entry["session"] == session]
    return [question(entry, mine) for entry in asked + earlier]


def marks(answers: Any, *, secret: str, session: int, learner: str = "") -> float:
    """The share of right letters; says of each question which is right, and why.

    Args:
        answers: a letter for each question.
        secret: of the session.
        session: counted from 1.
        learner: else the folder above says, as in nbgrader's autograded/LEARNER/ASSIGNMENT/.

    Returns:
        In [0, 1], the points of the quiz.
    """
    asked = quiz(secret, session, learner or Path.cwd().parent.name)
    letters = answers.strip().lower() if isinstance(answers, str) else ""
    right = 0
    for i, question in enumerate(asked):
        mine = letters[i] if i < len(letters) else ""
        reasons = dict(zip(LETTERS, question.options, strict=True))
        right += mine == question.letter
        verdict = "right" if mine == question.letter else f"wrong; right is {question.letter}"
        print(f"{i + 1}. {mine or 'no letter'}: {verdict}")
        for letter in sorted({mine, question.letter} & {*LETTERS}):
            reason = f"{letter}) {': '.join(reasons[letter])}"
            print(textwrap.fill(reason, 88, initial_indent="   ", subsequent_indent="      "))
    if len(letters) > len(asked):
        signs = f"{len(letters)} signs for {len(asked)} questions"
        print(f"0 points: {signs}; write one letter for each, with nothing between")
        return 0.0
    return round(right / len(asked), 3)


def quiz_text(questions: Sequence[Question]) -> str:
    """The questions with their options, in Markdown."""
    texts = []
    for i, question in enumerate(questions, 1):
        pairs = zip(LETTERS, question.options, strict=False)
        options = [f"   - {letter}) {option}" for letter, (option, _) in pairs]
        texts.append("\n".join([f"{i}. {question.ask}".replace("\n", "\n   "), *options]))
    return "\n\n".join(texts)


def quiz_notebook(session: int, *, secret: str, learner: str = "") -> Any:
    """The quiz of one session (nbformat's): a learner's own, or nbgrader's source for all."""
    import nbformat

    asked = [x["session"] for x in bank() if "answer" in x]
    count = asked.count(session) + min(EARLIER, sum(earlier < session for earlier in asked))
    text = quiz_text(quiz(secret, session, learner)) if learner else "Each learner has other ones."
    page = jinja2.Template((HERE / "pages" / "quiz.md").read_text(encoding="utf8"))
    head, answers, check = page.render(
        session=session, secret=secret, questions=text, count=count, example=("abcd" * 3)[:count]
    ).split("\n---\n")
    v4, common = nbformat.v4, {"schema_version": 3, "task": False}
    cells = [v4.new_markdown_cell(head), v4.new_code_cell(answers), v4.new_code_cell(check)]
    written = {"grade": False, "grade_id": "quiz", "locked": False, "solution": True}
    graded = {"grade": True, "grade_id": "quiz-check", "locked": True, "solution": False}
    cells[1].metadata["nbgrader"] = common | written
    cells[2].metadata["nbgrader"] = common | graded | {"points": 1}
    for i, cell in enumerate(cells):
        cell["id"] = f"quiz-{i}"
    kernel = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def seeded(source: str, secret: str, name: str) -> str:
    """A cell's text with the seeds of its hidden tests drawn from the secret."""
    shown, mark, hidden = source.partition("### BEGIN HIDDEN TESTS")
    seed = int(derived(secret, name), 16) % 10**6
    return shown + mark + SEEDS.sub(f"seed={seed}", hidden)


def exam(secret: str) -> dict[str, str]:
    """All questions with the term's numbers, and how to mark them: two pages of Markdown."""
    own = derived(secret, "exam")
    rows = [(entry["session"], question(entry, own)) for entry in bank()]
    page = jinja2.Template((HERE / "pages" / "exam.md").read_text(encoding="utf8"))
    marking = {"exam.md": False, "rubric.md": True}
    return {name: page.render(rows=rows, marking=marks) for name, marks in marking.items()}


def learners(file: Path) -> pd.DataFrame:
    """A row a learner: id and, if the file has them, first_name, last_name, email, lms_user_id.

    Raises:
        ValueError: the file is no such table, or an id is missing, double, or no name of a folder.
    """
    try:
        table = pd.read_csv(file, dtype=str).fillna("")
        if not isinstance(table.index, pd.RangeIndex):  # the first column, as pandas takes it
            raise ValueError("a row has more fields than the first line")
    except ValueError as error:  # of its bytes, rows or emptiness
        needs = 'save it as "CSV UTF-8", with a column id, a row a learner, as many fields in each'
        raise ValueError(f"{file} cannot be read ({str(error).strip()}): {needs}") from error
    if "id" not in table:
        raise ValueError(f"{file} needs a column id; got {', '.join(table.columns)}")
    bad = [x for x in table["id"] if not re.fullmatch(r"[A-Za-z0-9_.@-]*[A-Za-z0-9]", x)]
    bad += table.loc[table["id"].duplicated(), "id"].tolist()
    if bad or not len(table):
        raise ValueError(f"{file} needs an id a learner: letters, digits, _ . @ -; got {bad[:3]}")
    return table


# What the expressions of the bank may use


def _drawn(formulas: dict[str, str], rng: np.random.Generator) -> dict[str, Any]:
    """Values of a question's formulas, from top to bottom, and what they may use."""
    given = {
        "np": np,
        "metrics": metrics,
        "pick": lambda values: values[rng.integers(len(values))],
        "row": lambda n, low, high: (
            rng.permutation(np.arange(low * 100, high * 100).round())[:n] / 100
        ),
        "mixed": lambda values: rng.permutation(values),
    }
    for name, formula in formulas.items():
        given[name] = _value(formula, given)
    return given


def _value(formula: str, given: dict[str, Any]) -> Any:
    return ENVIRONMENT.compile_expression(formula, undefined_to_none=False)(given)


def _text(template: str, given: dict[str, Any]) -> str:
    return ENVIRONMENT.from_string(template).render(given)


ENVIRONMENT = jinja2.Environment(undefined=jinja2.StrictUndefined)
ENVIRONMENT.filters["numbers"] = lambda row: ", ".join(f"{x:.4g}" for x in row)
ENVIRONMENT.filters["words"] = lambda row, yes, no: ", ".join(yes if x else no for x in row)
