"""A function that is known by its source alone, and is only ever made in the process of a check."""

import textwrap
from dataclasses import dataclass
from typing import Any

COMMON = "import math\nimport itertools\nimport numpy as np\nimport torch\nfrom torch import nn\n" + (
    "import torch.nn.functional as F\n"
)
"""What the lessons' cells import: a function is handed in without the cell above it."""


class NoSuchFunction(NameError):
    """The source defines no such function."""


@dataclass(frozen=True)
class Written:
    """Stands for a function wherever one is passed on to a check; over there it becomes the function itself."""

    source: str
    """The text that defines it."""
    name: str
    """Its name."""

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("a function that was handed in runs in the process of a check, and nowhere else")

    def __reduce__(self) -> tuple[Any, ...]:
        return made, (self.source, self.name)


def made(source: str, name: str) -> Any:
    """The function. Runs the source: in the process of a check only."""
    namespace: dict[str, Any] = {"__name__": "handed_in"}
    exec(COMMON, namespace)
    exec(compile(textwrap.dedent(source), f"<{name}>", "exec"), namespace)
    if not callable(namespace.get(name)):
        raise NoSuchFunction(f"the source defines no function {name}")
    return namespace[name]
