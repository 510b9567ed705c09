"""YAML text with positions."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from conformance.document import MAX_CHARACTERS, MAX_DEPTH, CaseError, Document, Position


def refusal(text: str) -> str:
    with pytest.raises(CaseError) as caught:
        Document("f.yaml", text)
    (line,) = str(caught.value).splitlines()
    return line


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *((word, word) for word in ("on", "off", "yes", "no", "y", "8:16", "2020-01-01", "0b1", "1_000", "=", "<<", "NO")),
        *((word, True) for word in ("true", "True", "TRUE")),
        *((word, None) for word in ("null", "~", "")),
        *(("1e-5", 1e-5), ("1.", 1.0), (".5", 0.5), ("-1E+3", -1000.0), ("-.inf", -math.inf), (".INF", math.inf)),
        *(("0o17", 15), ("0x1f", 31), ("017", 17), ("-0", 0), ("+1", 1), ("'1'", "1"), ("!!str 1", "1"), ("!!float 1", 1.0)),
    ],
)
def test_scalars_are_those_of_yaml_1_2(written: str, read: object) -> None:
    found = Document("f.yaml", f"a: {written}").data["a"]
    assert (type(found), found) == (type(read), read)


def test_not_a_number_is_read() -> None:
    assert math.isnan(Document("f.yaml", "a: .nan").data["a"])


def test_a_negative_zero_keeps_its_sign() -> None:
    assert math.copysign(1, Document("f.yaml", "a: -0.0").data["a"]) == -1


def test_keys_are_texts() -> None:
    assert list(Document("f.yaml", "{0: a, true: b, ~: c, on: d, 1.5: e}").data) == ["0", "true", "~", "on", "1.5"]


def test_anchors_are_copied() -> None:
    data = Document("f.yaml", "a: &x [1, 2]\nb: *x").data
    assert data == {"a": [1, 2], "b": [1, 2]}
    assert data["a"] is not data["b"]


def test_an_empty_document_is_nothing() -> None:
    assert Document("f.yaml", "# only a comment\n").data is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\nb: 2\na: 3", "3:1: the key 'a' stands here twice"),
        ("a: {b: 1, c: 2, b: 3}", "1:17: the key 'b' stands here twice"),
        ("a:\n\tb: 1", "2:1: not YAML: "),
        ("a: [1, 2\n", "2:1: not YAML: "),
        ("a: *b", "1:4: not YAML: "),
        ("a: 1\n---\nb: 2", "2:1: not YAML: "),
        ("é: b\0", "1:5: not YAML: the character #x0000 cannot stand here"),
        ("a:\n  ééé\x07", "2:6: not YAML: the character #x0007 cannot stand here"),
        ('a: "\\ud800"', "1:7: not YAML: "),
        (
            "a: !!python/object/apply:os.system [echo]",
            "1:4: the tag !!python/object/apply:os.system is not allowed; only plain YAML 1.2 is",
        ),
        ("a: !!python/name:os.system x", "1:4: the tag !!python/name:os.system is not allowed; only plain YAML 1.2 is"),
        ("a: !odd {b: 1}", "1:4: the tag !odd is not allowed; only plain YAML 1.2 is"),
        ("a: !!set {b}", "1:4: the tag !!set is not allowed; only plain YAML 1.2 is"),
        ("a: !!seq {b: 1}", "1:4: the tag !!seq is not allowed; only plain YAML 1.2 is"),
        ("a: !!binary aGk=", "1:4: the tag !!binary is not allowed; only plain YAML 1.2 is"),
        ("!odd a: 1", "1:1: a key must be a plain name"),
        ("[a, b]: 1", "1:1: a key must be a plain name"),
        ("? {a: b}\n: 1", "1:3: a key must be a plain name"),
        ("a: !!int many", "1:4: 'many' cannot be read as int"),
        ("a: !!bool ''", "1:4: '' cannot be read as bool"),
        ("a: &x [*x]", "1:4: nested deeper than 50 levels"),
        ("a: &x {b: *x}", "1:4: nested deeper than 50 levels"),
    ],
)
def test_what_cannot_be_read_is_one_line_with_its_place(text: str, said: str) -> None:
    assert refusal(text).startswith(f"f.yaml:{said}")


def test_a_number_with_too_many_digits_is_refused() -> None:
    assert refusal("a: " + 5000 * "1") == f"f.yaml:1:4: '{40 * '1'}' cannot be read as int"


def test_a_file_that_is_too_long_is_refused() -> None:
    said = "f.yaml:1:1: the file is longer than 4,000,000 characters; split it into topics"
    assert refusal("a: " + "#" * MAX_CHARACTERS) == said


def test_aliases_of_aliases_do_not_fill_the_memory() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    bomb += "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 10))
    assert "expands to more than 100,000 values" in refusal(bomb)


def test_the_allowed_depth_can_be_reached() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert Document("f.yaml", text).data
    assert "nested deeper" in refusal(f"[{text}]")


@pytest.mark.parametrize("opened", ["[", "{a: ", "- ", "? ", "[[[[", "!!seq ["])
@pytest.mark.parametrize("closed", ["", "]"])
def test_no_depth_ends_the_process(opened: str, closed: str) -> None:
    program = (
        "from conformance.document import CaseError, Document\n"
        f"try:\n    Document('f.yaml', {opened!r} * 100_000 + {closed!r} * 100_000)\n"
        "except CaseError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "nest" in done.stdout
    assert len(done.stdout.splitlines()) == 1


TEXT = """\
plain: one two
quoted: "three"
block: |   # a comment

  a = 1
    b
folded: >
  x
  y
flow: {k: [1, 2]}
lines: one
  two
"""


@pytest.mark.parametrize(
    ("path", "at", "key"),
    [
        ((), (1, 1), (1, 1)),
        (("plain",), (1, 8), (1, 1)),
        (("flow", "k"), (10, 11), (10, 8)),
        (("flow", "k", 1), (10, 15), (10, 15)),
        (("flow", "k", 7, "far"), (10, 11), (10, 11)),
    ],
)
def test_values_and_keys_have_places(path: tuple[str | int, ...], at: tuple[int, int], key: tuple[int, int]) -> None:
    document = Document("f.yaml", TEXT)
    assert document.at(path) == Position(*at)
    assert document.at(path, key=True) == Position(*key)


@pytest.mark.parametrize(
    ("name", "line", "column", "place"),
    [
        ("plain", 1, 5, (1, 12)),
        ("quoted", 1, 1, (2, 10)),
        ("block", 1, 1, (4, 3)),  # the empty line belongs to the text
        ("block", 2, 5, (5, 7)),
        ("block", 3, 3, (6, 5)),
        ("folded", 1, 3, (7, 9)),  # where a line of folded text stands is not known
        ("lines", 1, 5, (11, 8)),
    ],
)
def test_places_within_a_text_are_those_of_the_file(name: str, line: int, column: int, place: tuple[int, int]) -> None:
    assert Document("f.yaml", TEXT).within((name,), line, column) == Position(*place)
