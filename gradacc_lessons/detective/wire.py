"""How the checking process answers: one JSON header and raw float64 numbers, never a pickle.

A frame is 8 bytes (length of the header), the header as JSON, then the arrays one after the other. The header's
`shapes` says how to cut them. Everything that reads a frame distrusts it.
"""

import json
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LENGTH = struct.Struct(">Q")
MAX_FRAME_BYTES = 16 * 2**20
"""An honest answer takes some 100 kB; whatever is longer is not one."""


class WireError(ValueError):
    """The bytes are not a frame."""


def pack(header: dict[str, Any], arrays: dict[str, Array] | None = None) -> bytes:
    """One frame out of a JSON header and named float64 arrays."""
    arrays = arrays or {}
    full = {**header, "shapes": [[name, list(array.shape)] for name, array in arrays.items()]}
    text = json.dumps(full).encode()
    return b"".join(
        [
            LENGTH.pack(len(text)),
            text,
            *(np.ascontiguousarray(a, np.float64).tobytes() for a in arrays.values()),
        ]
    )


def unpack(frame: bytes) -> tuple[dict[str, Any], dict[str, Array]]:
    """The header and the arrays of a frame; WireError when it is anything else."""
    try:
        (length,) = LENGTH.unpack_from(frame)
        body = LENGTH.size + length
        if not 0 < length <= len(frame) - LENGTH.size:
            raise WireError("the header is cut off")
        header = json.loads(frame[LENGTH.size : body].decode())
        arrays: dict[str, Array] = {}
        for name, shape in header.pop("shapes"):
            size = int(np.prod(shape, dtype=np.int64))
            if any(not isinstance(side, int) or side < 0 for side in shape) or body + 8 * size > len(frame):
                raise WireError(f"the array {name!r} is cut off")
            arrays[str(name)] = np.frombuffer(frame, np.float64, size, body).reshape(shape)
            body += 8 * size
        if body != len(frame):
            raise WireError("there is more behind it")
    except (struct.error, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise WireError(str(error)) from error
    return header, arrays
