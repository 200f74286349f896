"""Plain data out of a YAML file, with the line of every value, and none of YAML's surprises.

Nothing is ever constructed but text, whole numbers, decimal numbers, true, false, null, lists and mappings.
Tags and aliases are refused, so is a file that is too large or nests too deep. `No` and `2026-01-01` stay text.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MAX_BYTES = 400_000
MAX_DEPTH = 12
Path_ = tuple[str | int, ...]
"""Where a value stands in the data: keys and 0-based positions."""

_WHOLE = re.compile(r"[-+]?(0|[1-9]\d{0,17})")
_DECIMAL = re.compile(r"[-+]?\d+(\.\d*)?([eE][-+]?\d+)?")
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}


class YamlError(ValueError):
    """The file cannot be read; one sentence says why, `line` says where."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(what)
        self.line = line


@dataclass(frozen=True)
class Document:
    """What a file holds."""

    data: Any
    """Mappings, lists and plain values."""
    lines: dict[Path_, int]
    """The 1-based line where each value begins, by its path in the data."""


class _Composer(yaml.SafeLoader):
    """Builds the tree of nodes; refuses what could do more than hold text."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        """One node; YamlError for an alias, a tag, and what nests too deep."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent):
            raise YamlError(line, f"aliases (*{event.anchor}) are not allowed; write the text out")
        if getattr(event, "tag", None) is not None:
            raise YamlError(line, f"tags ({event.tag}) are not allowed")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise YamlError(line, f"the file nests deeper than {MAX_DEPTH} levels")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def load(path: Path) -> Document:
    """Read one YAML file; YamlError names the line and what is wrong with it, OSError if it cannot be opened."""
    with path.open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise YamlError(1, f"the file is larger than {MAX_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise YamlError(raw[: error.start].count(b"\n") + 1, "the file is not UTF-8 text") from None
    try:
        node = _Composer(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(mark.line + 1 if mark else 1, f"this is not YAML: {error.problem}") from None
    except yaml.reader.ReaderError as error:
        raise YamlError(text[: error.position].count("\n") + 1, "the file holds a control character") from None
    if node is None:
        raise YamlError(1, "the file is empty")
    lines: dict[Path_, int] = {}
    return Document(_plain(node, (), lines), lines)


def _plain(node: Any, path: Path_, lines: dict[Path_, int]) -> Any:
    lines[path] = node.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item, (*path, index), lines) for index, item in enumerate(node.value)]
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node)
    result: dict[str | int, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = _scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else None
        if isinstance(key, bool) or not isinstance(key, str | int):
            raise YamlError(line, "a key must be a word or a whole number")
        if key in result:
            raise YamlError(line, f"{key!r} stands here twice")
        result[key] = _plain(value_node, (*path, key), lines)
        lines[(*path, key)] = line
    return result


def _scalar(node: yaml.ScalarNode) -> Any:
    text: str = node.value
    if node.style is not None:  # quoted, or a block: always text
        return text
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _DECIMAL.fullmatch(text) else text
