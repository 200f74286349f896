"""A certificate's files: two pictures, the token, and a document to read; each can be verified alone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, get_args

from gradacc_lessons.certificate import picture
from gradacc_lessons.certificate.credential import ID_SCHEME, Credential
from gradacc_lessons.certificate.keys import SigningKey
from gradacc_lessons.certificate.picture_seal import seal
from gradacc_lessons.certificate.reading import as_document
from gradacc_lessons.whole_file import write_whole

Format = Literal["svg", "png", "jwt", "json"]
FORMATS: tuple[Format, ...] = get_args(Format)


def file_bytes(credential: Credential, key: SigningKey, form: Format) -> bytes:
    """One of the files; the same credential and key give the same bytes on the same computer."""
    if form == "jwt":
        return f"{credential.token}\n".encode("ascii")
    if form == "json":
        return (json.dumps(as_document(credential), ensure_ascii=False, indent=2, sort_keys=True) + "\n").encode(
            "utf-8"
        )
    return seal(picture.svg(credential) if form == "svg" else picture.png(credential), credential, key)


def save(
    credential: Credential, folder: Path, *, key: SigningKey, forms: Sequence[Format] = FORMATS, name: str | None = None
) -> list[Path]:
    """Write the certificate's files into `folder`, which is made if need be; the paths.

    `key` is the one that it was issued with: it seals the pictures. The files' name begins with `name`, or else with
    the certificate's kind and id. Each is written whole or not at all.
    """
    name = name or f"gradacc-{credential.kind}-{credential.id.removeprefix(ID_SCHEME)[:8]}"
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for form in forms:
        path = folder / f"{name}.{form}"
        write_whole(path, file_bytes(credential, key, form))
        paths.append(path)
    return paths
