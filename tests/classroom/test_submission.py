"""A submission is read strictly: what is not exactly one is refused with a word for each reason, quickly, quietly."""

import gzip
import io
import json
import random
import time
import zipfile
from typing import Any

import pytest
from classroom.class_room import AT, handed_in

from gradacc_lessons.canonical import canonical, digest
from gradacc_lessons.classroom.codes import code_for
from gradacc_lessons.classroom.problem import ClassError
from gradacc_lessons.classroom.submission import MOST_ANSWERS, MOST_BYTES, read_submission

CODE, OTHER = (code_for(bytes(32), "k7m2qd", name) for name in ("s1", "s2"))
GIVEN = [("small-choice", 1, "sums"), ("small-multiple", 1, ["step", "zero"]), ("small-number", 2, 12.5)]
WHOLE = handed_in(CODE, {"90_small": GIVEN, "01_accumulate": [("acc-write-loop", 1, "def f():\n    pass\n")]})


def _refused(raw: bytes) -> str:
    began = time.monotonic()
    with pytest.raises(ClassError) as refused:
        read_submission(raw)
    assert time.monotonic() - began < 2
    assert refused.value.text.en != refused.value.text.nl and len(str(refused.value)) < 400
    return refused.value.id


def _zip(content: bytes) -> bytes:
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", content)
    return raw.getvalue()


def test_what_was_written_is_read() -> None:
    read = read_submission(WHOLE)
    assert read.proven(CODE) and not read.proven(OTHER)
    assert list(read.lessons) == ["90_small", "01_accumulate"] and read.written == AT
    assert [(each["question"], each["take"], each["value"]) for each in read.lessons["90_small"]] == GIVEN
    assert CODE.text.encode() not in WHOLE, "the code itself stays with the learner"


def test_how_the_json_is_laid_out_does_not_matter() -> None:
    assert read_submission(json.dumps(json.loads(WHOLE), indent=2).encode()) == read_submission(WHOLE)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not_json"),
        (b"\x80\x04\x95", "not_json"),  # a pickle
        (WHOLE[:-10], "not_json"),
        (WHOLE + b"x", "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a":' * 100_000, "not_json"),
        (b"9" * 1_900_000, "not_json"),
        (b'{"format":"gradacc-submission","format":1}', "not_json"),
        (b'{"format":NaN}', "not_json"),
        (b"[]", "not_submission"),
        (b'"x"', "not_submission"),
        (b"{}", "not_submission"),
        (b" " * (MOST_BYTES + 1), "too_large"),
        (gzip.compress(bytes(10_000_000)), "compressed"),
        (_zip(bytes(10_000_000)), "compressed"),
        (handed_in(CODE, {}, version=2), "version"),
        (handed_in(CODE, {}, format="gradacc-result"), "not_submission"),
        (handed_in(CODE, {}, proof=None), "shape"),
        (handed_in(CODE, {}, score=100), "shape"),
        (handed_in(CODE, {}, learner="../../s1"), "shape"),
        (handed_in(CODE, {}, written="yesterday"), "shape"),
        (handed_in(CODE, {}, written="\u0662026-09-01T10:00:00Z"), "shape"),
        (handed_in(CODE, {}, versions={"a": 1}), "shape"),
        (handed_in(CODE, {"../../../class": GIVEN}), "shape"),
        (handed_in(CODE, {"01_" + "x" * 100: GIVEN}), "shape"),
        (handed_in(CODE, {"90_small": [("../x", 1, 1)]}), "shape"),
        (handed_in(CODE, {"90_small": [("small-choice", 0, 1)]}), "shape"),
        (handed_in(CODE, {"90_small": [("small-choice", True, 1)]}), "shape"),
        (handed_in(CODE, {"90_small": [("small-choice", 1, None)]}), "shape"),
        (handed_in(CODE, {"90_small": [("small-choice", 1, {"$type": "os.system"})]}), "shape"),
        (handed_in(CODE, {"90_small": [("small-choice", 1, "x" * 30_000)]}), "shape"),
        (handed_in(CODE, {"90_small": [("small-choice", 1, ["x"] * 51)]}), "shape"),
        (handed_in(CODE, {"90_small": [("small-choice", 1, 1)] * (MOST_ANSWERS + 1)}), "shape"),
        (handed_in(CODE, {}, checksum="0" * 64), "checksum"),
        (WHOLE.replace(b"sums", b"mean"), "checksum"),
    ],
)  # fmt: skip
def test_what_is_refused_and_why(raw: bytes, reason: str) -> None:
    assert _refused(raw) == reason


def test_answers_changed_and_summed_anew_are_not_proven() -> None:
    value = json.loads(WHOLE)
    value["lessons"][0]["answers"][0]["value"] = "mean"
    value["checksum"] = digest({key: part for key, part in value.items() if key not in ("checksum", "proof")})
    assert not read_submission(canonical(value)).proven(CODE)


def test_another_learners_name_on_it_is_not_proven() -> None:
    value = {**json.loads(WHOLE), "learner": OTHER.handle}
    value["checksum"] = digest({key: part for key, part in value.items() if key not in ("checksum", "proof")})
    assert not read_submission(canonical(value)).proven(OTHER)


def _mutated(rng: random.Random) -> bytes:
    """The submission with something changed: bytes, or a value somewhere in it."""
    if rng.random() < 0.5:
        raw = bytearray(WHOLE)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(raw))
            raw[at : at + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
        return bytes(raw)
    value = json.loads(WHOLE)
    at: Any = value
    while True:
        key = rng.choice(list(at) if isinstance(at, dict) else range(len(at)))
        inside = at[key]
        if isinstance(inside, dict | list) and inside and rng.random() < 0.8:
            at = inside
            continue
        odd = [None, True, -1, 1e308, "", "x", "\x00", "=1+1", [], {}, [[]], inside, "9" * 40, 10**30]
        if rng.random() < 0.2:
            del at[key]
        else:
            at[key] = rng.choice(odd)
        return json.dumps(value).encode()


def _try_mutations(count: int, seed: int) -> None:
    rng, meaning, accepted = random.Random(seed), json.loads(WHOLE), 0
    for _ in range(count):
        raw = _mutated(rng)
        began = time.monotonic()
        try:
            read = read_submission(raw)
        except ClassError:
            pass
        else:
            if read.proven(CODE):
                accepted += 1
                assert json.loads(raw) == meaning, raw
        assert time.monotonic() - began < 2
    assert accepted < count / 4, "most mutations change the meaning"


def test_a_hundred_mutations() -> None:
    _try_mutations(100, seed=0)


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_ten_thousand_mutations(part: int) -> None:
    _try_mutations(1000, seed=part + 1)
