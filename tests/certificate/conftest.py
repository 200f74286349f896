"""Each test has a home of its own, and the files of one certificate are made once."""

import pytest
from certificate.made import key, made

from gradacc_lessons.certificate.credential import Credential
from gradacc_lessons.certificate.files import FORMATS, file_bytes


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("GRADACC_HOME", str(folder))
    return folder


@pytest.fixture(scope="session")
def ada() -> Credential:
    return made()


@pytest.fixture(scope="session")
def files(ada: Credential) -> dict[str, bytes]:
    return {form: file_bytes(ada, key(), form) for form in FORMATS}
