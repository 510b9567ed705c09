"""YAML text, read safely as YAML 1.2, into plain data that remembers where each part stands."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

import yaml
from yamlcore import CCoreLoader

MAX_CHARACTERS = 4_000_000
MAX_VALUES = 100_000
MAX_DEPTH = 50

_TAG = "tag:yaml.org,2002:"

Path = tuple[str | int, ...]


class Position(NamedTuple):
    """A place in a file, counted from 1."""

    line: int
    column: int


class Mistake(NamedTuple):
    """One thing wrong in a case file, and where."""

    file: str
    position: Position
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.position.line}:{self.position.column}: {self.message}"


class CaseError(Exception):
    """Mistakes in case files; its text is one line for each."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self.mistakes = sorted(mistakes)
        super().__init__("\n".join(map(str, self.mistakes)))


class Document:
    """Plain data and the position of every value and key, found by path."""

    def __init__(self, file: str, text: str) -> None:
        """Raises CaseError for YAML that cannot be read, repeats a key, or would grow beyond bounds."""
        self.file = file
        self.lines = text.splitlines()
        self.values: dict[Path, Position] = {}
        self.keys: dict[Path, Position] = {}
        self.blocks: dict[Path, int] = {}
        """The line of the ``|`` of each block of text."""
        self.inline: dict[Path, Position] = {}
        """Where the first character of each text in a single line stands."""
        self._values = 0
        if len(text) > MAX_CHARACTERS:
            raise self.error(Position(1, 1), f"the file is longer than {MAX_CHARACTERS:,} characters; split it into topics")
        try:
            self._refuse_depth(text)
            loader = CCoreLoader(text)
            node = loader.get_single_node()
        except yaml.reader.ReaderError as error:
            message = f"not YAML: the character #x{error.character:04x} cannot stand here"
            raise self.error(end_of(text.encode()[: error.position].decode(errors="replace")), message) from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self.error(_position(mark), f"not YAML: {error.problem}") from None
        self.data: Any = None if node is None else self._construct(loader, node, ())

    def error(self, position: Position, message: str) -> CaseError:
        return CaseError([Mistake(self.file, position, message)])

    def mistake(self, path: Path, message: str, *, key: bool = False) -> Mistake:
        """A mistake at the path, or at its key, that names the case it is in; the name goes before a hint."""
        said, hint = re.fullmatch(r"(.*?)(; (?:did you mean|known:) .*)?", message, re.S).groups("")  # type: ignore[union-attr]  # it fits any text
        return Mistake(self.file, self.at(path, key=key), said + self._of_case(path) + hint)

    def _of_case(self, path: Path) -> str:
        if len(path) < 2 or path[0] != "cases" or not isinstance(path[1], int):
            return ""
        case = self.data["cases"][path[1]]
        return f" in case {case['id']!r}" if isinstance(case, dict) and isinstance(case.get("id"), str) else ""

    def at(self, path: Path, *, key: bool = False) -> Position:
        """The position of the value (or its key) at the path, or of the nearest thing around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Position(1, 1))

    def within(self, path: Path, line: int, column: int) -> Position:
        """Where line and column (from 1) of the text at the path stand in the file."""
        if path in self.blocks:
            return Position(self.blocks[path] + line, column + self._indent(self.blocks[path] + 1))
        if path in self.inline and line == 1:
            return Position(self.inline[path].line, self.inline[path].column + column - 1)
        return self.at(path)

    def _indent(self, row: int) -> int:
        while row <= len(self.lines) and not self.lines[row - 1].strip():
            row += 1
        return len(self.lines[row - 1]) - len(self.lines[row - 1].lstrip()) if row <= len(self.lines) else 0

    def _refuse_depth(self, text: str) -> None:
        """Before the text is composed, since libyaml's bindings overflow the stack, which would end the process."""
        depth = 0
        for event in yaml.parse(text, CCoreLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise self.error(_position(event.start_mark), f"nested deeper than {MAX_DEPTH} levels")

    def _construct(self, loader: Any, node: yaml.Node, path: Path) -> Any:
        position = _position(node.start_mark)
        self.values[path] = position
        self._values += 1
        # Aliases are copied, so that a few lines of them could otherwise fill the memory, or have no end.
        if self._values > MAX_VALUES:
            raise self.error(position, f"the document expands to more than {MAX_VALUES:,} values (aliases of aliases?)")
        if len(path) > MAX_DEPTH:
            raise self.error(position, f"nested deeper than {MAX_DEPTH} levels")
        if not _is_plain(loader, node):
            raise self.error(position, f"the tag {node.tag.replace(_TAG, '!!')} is not allowed; only plain YAML 1.2 is")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._construct(loader, child, (*path, i)) for i, child in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        if node.style == "|":
            self.blocks[path] = position.line
        elif node.start_mark.line == node.end_mark.line and node.style != ">":
            self.inline[path] = position._replace(column=position.column + (node.style in ("'", '"')))
        try:
            return loader.construct_object(node)
        except (yaml.YAMLError, ValueError, LookupError):
            raise self.error(position, f"{node.value[:40]!r} cannot be read as {node.tag.removeprefix(_TAG)}") from None

    def _mapping(self, loader: Any, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            position = _position(key_node.start_mark)
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or not key_node.tag.startswith(_TAG):
                raise self.error(position, "a key must be a plain name")
            if key in result:
                raise self.error(position, f"the key {key!r} stands here twice")
            self.keys[(*path, key)] = position
            result[key] = self._construct(loader, value_node, (*path, key))
        return result


def _is_plain(loader: Any, node: yaml.Node) -> bool:
    if isinstance(node, yaml.ScalarNode):
        return node.tag in loader.yaml_constructors
    return node.tag == _TAG + ("map" if isinstance(node, yaml.MappingNode) else "seq")


def end_of(text: str) -> Position:
    """Where a text ends, if it begins a file."""
    return Position(text.count("\n") + 1, len(text) - text.rfind("\n"))


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name."""
    known = list(known)
    close = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}" if known else ""


def short(value: Any) -> str:
    """A value as it may stand in a message."""
    text = {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
