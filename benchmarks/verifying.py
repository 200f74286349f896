"""How long it takes to verify a certificate."""

import os
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.row import Row, in_turns, median_row, timed


def verifying(quick: bool) -> list[Row]:
    """A certificate is verified, offline.

    A certificate for the core lessons, by an issuer that is trusted: the text of its QR code and each of its files, in
    turns, in one process. The medians are of the seconds that the processor worked. Then `gradacc verify` with the
    .png in a fresh process, by the clock.
    """
    from gradacc_lessons.certificate.compact import compact
    from gradacc_lessons.certificate.earned import CORE
    from gradacc_lessons.certificate.files import FORMATS, save
    from gradacc_lessons.certificate.issue import issue
    from gradacc_lessons.certificate.keys import own_key

    with tempfile.TemporaryDirectory() as home:
        key = own_key(Path(home, "key.pem"))
        passed = dict.fromkeys(CORE, 1.0)
        credential = issue("Ada Lovelace", passed, key=key, issuer_name="Ada's school", kind="core")
        files = save(credential, Path(home), key=key, name="certificate")
        sources: dict[str, str | Path] = {"QR code": compact(credential), **dict(zip(FORMATS, files, strict=True))}
        seconds = in_turns({name: _verify(each, key.did) for name, each in sources.items()}, 3 if quick else 50)
        rows = [median_row(f"{name}, in a running process", each, "ms") for name, each in seconds.items()]
        command = _command(home, str(sources["png"]), key.did)
        runs = in_turns({"command": command}, 2 if quick else 15)["command"]
        return [*rows, median_row("gradacc verify certificate.png", runs, "ms")]


def _verify(source: str | Path, issuer: str) -> Callable[[], float]:
    """RuntimeError if the answer is another one than that the issuer is trusted: its time would say nothing."""
    from gradacc_lessons.certificate.verify import verify

    def verified() -> float:
        began = time.process_time()
        outcome = verify(source, issuers=[issuer]).outcome
        took = time.process_time() - began
        if outcome != "trusted":
            raise RuntimeError(f"the certificate is {outcome}")
        return took

    return verified


def _command(home: str, file: str, issuer: str) -> Callable[[], float]:
    command = [str(Path(sysconfig.get_path("scripts")) / "gradacc"), "verify", file, "--issuer", issuer]
    environment = {**os.environ, "GRADACC_HOME": home}
    return timed(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment))
