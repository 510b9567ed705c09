"""YAML text, read safely as YAML 1.2, into plain data that remembers where each part stands."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml
from yamlcore import CCoreLoader

MAX_BYTES = 4 * 2**20
MAX_NODES = 1_000_000
MAX_DEPTH = 50

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
        self._nodes = 0
        if len(text) > MAX_BYTES:
            raise self.error(Position(1, 1), f"the file is larger than {MAX_BYTES // 2**20} MiB; split it into topics")
        try:
            loader = CCoreLoader(text)
            node = loader.get_single_node()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise self.error(_position(mark), f"not YAML: {error.problem}") from None
        except (yaml.YAMLError, ValueError) as error:
            raise self.error(Position(1, 1), f"not YAML: {' '.join(str(error).split())}") from None
        except RecursionError:
            raise self.error(Position(1, 1), "nested too deeply") from None
        self.data: Any = None if node is None else self._construct(loader, node, ())

    def error(self, position: Position, message: str) -> CaseError:
        return CaseError([Mistake(self.file, position, message)])

    def at(self, path: Path, *, key: bool = False) -> Position:
        """The position of the value (or its key) at the path, or of the nearest thing around it."""
        if key and path in self.keys:
            return self.keys[path]
        while path and path not in self.values:
            path = path[:-1]
        return self.values.get(path, Position(1, 1))

    def within(self, path: Path, line: int, column: int) -> Position:
        """Where line and column (from 1) of the text at the path stand in the file."""
        start = self.at(path)
        if path not in self.blocks:
            return Position(start.line, start.column + column - 1) if line == 1 else start
        row = self.blocks[path] + line
        return Position(row, column + self._indent(self.blocks[path] + 1))

    def _indent(self, row: int) -> int:
        while row <= len(self.lines) and not self.lines[row - 1].strip():
            row += 1
        return len(self.lines[row - 1]) - len(self.lines[row - 1].lstrip()) if row <= len(self.lines) else 0

    def _construct(self, loader: Any, node: yaml.Node, path: Path) -> Any:
        position = _position(node.start_mark)
        self.values[path] = position
        self._nodes += 1
        # Aliases are copied, so that a few lines of them could otherwise fill the memory.
        if self._nodes > MAX_NODES:
            raise self.error(position, f"the document expands to more than {MAX_NODES:,} values (aliases of aliases?)")
        if len(path) > MAX_DEPTH:
            raise self.error(position, f"nested deeper than {MAX_DEPTH} levels")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(loader, node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self._construct(loader, child, (*path, i)) for i, child in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode) and node.style in ("|", ">"):
            self.blocks[path] = position.line
        try:
            return loader.construct_object(node)
        except (yaml.YAMLError, ValueError):
            raise self.error(position, f"the tag {node.tag} is not allowed here; only plain YAML 1.2 values are") from None

    def _mapping(self, loader: Any, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            position = _position(key_node.start_mark)
            key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
            if key is None:
                raise self.error(position, "a key must be a plain name")
            if key in result:
                raise self.error(position, f"the key {key!r} stands here twice")
            self.keys[(*path, key)] = position
            result[key] = self._construct(loader, value_node, (*path, key))
        return result


def _position(mark: Any) -> Position:
    return Position(mark.line + 1, mark.column + 1) if mark else Position(1, 1)
