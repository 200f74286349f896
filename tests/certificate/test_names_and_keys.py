"""Names that people have and names that deceive; keys that only their owner can read."""

import os
import threading
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
from certificate.made import key, made
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from openbadgeslib.ob3.did import did_key_from_pem, resolve_did

from gradacc_lessons.certificate import keyring
from gradacc_lessons.certificate.keys import KEY_FILE, SigningKey, did_of, key_in, key_of, own_key, read_did
from gradacc_lessons.certificate.names import clean_name
from gradacc_lessons.certificate.problem import CertificateError


@pytest.mark.parametrize(
    "name",
    [
        "Jörg Müßig",
        "Zoë 't Hart",
        "שרה כהן",
        "محمد الخوارزمي",
        "山田太郎",
        "नरेंद्र",
        "👩\u200d🔬 Ada",
        "\u0645\u06cc\u200c\u062e\u0648",
        "W" * 200,
        "X Æ 12",
    ],
)
def test_a_name_that_somebody_has_stays_as_it_is(name):
    assert made(name).name == clean_name(name) == name


def test_accents_are_composed_and_spaces_tidied():
    assert clean_name("  Zoe\u0308   Hart ") == "Zoë Hart"


@pytest.mark.parametrize(
    "char",
    ["\n", "\t", "\r", "\0", "\x1b", "\x7f", "\x85", "\u202e", "\u2066", "\u2028", "\ufeff", "\ud800", "\U000e0041"],
)
def test_a_control_character_is_refused_with_its_code(char):
    with pytest.raises(CertificateError, match=f"U\\+{ord(char):04X}") as caught:
        clean_name(f"Ada{char}Lovelace")
    assert f"U+{ord(char):04X}" in caught.value.text.nl


@pytest.mark.parametrize("name", ["", "   ", "...", "\u200d", "W" * 201])
def test_no_name_and_too_long_a_name_are_refused(name):
    with pytest.raises(CertificateError):
        clean_name(name)


@given(st.text(max_size=30))
def test_a_name_is_refused_or_clean_for_good(name):
    try:
        shown = clean_name(name)
    except CertificateError:
        return
    assert clean_name(shown) == shown and len(shown) <= 200
    assert not any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in shown)


@given(st.binary(min_size=32, max_size=32))
def test_a_did_key_is_the_key_and_another_library_writes_and_reads_it_alike(seed):
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    assert did_of(public) == did_key_from_pem(pem)
    assert key_of(did_of(public)).public_bytes_raw() == public.public_bytes_raw()
    resolved = resolve_did(did_of(public))
    assert (resolved if isinstance(resolved, bytes) else resolved.encode()).strip() == pem.strip()


@pytest.mark.parametrize(
    "did",
    [
        "",
        "did:key:",
        "did:key:z",
        "did:key:z6Mk",
        "did:web:example.org",
        "did:key:zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
    ],
)
def test_what_is_no_ed25519_key_is_refused(did):
    with pytest.raises(CertificateError, match="no public key"):
        key_of(did)


def test_a_did_key_has_one_way_to_be_written():
    did = key().did
    for other in (did.replace("z6Mk", "z16Mk"), did + " ", did[:-1], did + "1", did.upper(), did.replace("6", "0", 1)):
        with pytest.raises(CertificateError):
            key_of(other)


def test_the_own_key_is_made_once_and_only_its_owner_can_read_it(home):
    made_first = own_key()
    assert (home / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert own_key().did == made_first.did
    assert sorted(path.name for path in home.iterdir()) == [KEY_FILE]
    assert made_first.did in repr(made_first) and "PRIVATE" not in repr(made_first)


def test_a_key_is_0600_whatever_the_umask(home):
    before = os.umask(0)
    try:
        own_key()
    finally:
        os.umask(before)
    assert (home / KEY_FILE).stat().st_mode & 0o777 == 0o600


def test_a_key_that_others_can_read_is_not_used(home):
    own_key()
    (home / KEY_FILE).chmod(0o640)
    with pytest.raises(CertificateError, match=r"chmod 600.*a new one is made"):
        own_key()


def test_nobody_is_told_to_throw_away_a_file_that_is_no_key(tmp_path):
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(CertificateError, match=r"holds no key that can be used here\.$"):
        key_in(tmp_path / "thesis.txt")
    own_key(tmp_path / "teacher.pem")
    (tmp_path / "teacher.pem").chmod(0o604)
    with pytest.raises(CertificateError, match=r"nobody has read it\.$"):
        key_in(tmp_path / "teacher.pem")


def test_of_many_that_make_the_key_at_once_all_get_the_same(home):
    start, found = threading.Barrier(8), []

    def make():
        start.wait()
        found.append(own_key().did)

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(found)) == 1
    assert [path.name for path in home.iterdir()] == [KEY_FILE]


@pytest.mark.parametrize("raw", [b"", b"garbage", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"])
def test_a_damaged_key_file_is_a_sentence(home, raw):
    own_key()
    (home / KEY_FILE).write_bytes(raw)
    with pytest.raises(CertificateError, match="no key that can be used"):
        own_key()


def test_a_key_can_be_named_as_did_or_as_a_file_with_it_or_with_pem(tmp_path):
    public = key().private.public_key()
    (tmp_path / "did.txt").write_text(f"{key().did}\n")
    (tmp_path / "key.pem").write_bytes(public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    for named in (key().did, str(tmp_path / "did.txt"), str(tmp_path / "key.pem")):
        assert read_did(named) == key().did


def test_a_private_key_or_one_of_another_kind_is_not_taken_for_a_public_one(tmp_path):
    file = tmp_path / "key.pem"
    file.write_bytes(key().private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    with pytest.raises(CertificateError, match="Never give that away"):
        read_did(str(file))
    other = generate_private_key(SECP256R1()).public_key()
    file.write_bytes(other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    with pytest.raises(CertificateError, match="no public key"):
        read_did(str(file))
    file.write_text("a diary")
    with pytest.raises(CertificateError, match=r"key\.pem holds no public key") as refused:
        read_did(str(file))
    assert "diary" not in refused.value.text.en + refused.value.text.nl
    with pytest.raises(CertificateError, match="neither"):
        read_did(str(tmp_path / "nowhere.pem"))


def test_the_keyring_remembers_forgets_and_is_the_users_alone(home):
    keyring.trust(key(1).did, "Class 5V")
    keyring.trust(key(2).did, "Zoë")
    assert keyring.trusted() == {key(1).did: "Class 5V", key(2).did: "Zoë"}
    assert (home / keyring.FILE_NAME).stat().st_mode & 0o777 == 0o600
    assert keyring.forget(key(1).did) and not keyring.forget(key(1).did)
    assert keyring.trusted() == {key(2).did: "Zoë"}


def test_two_that_trust_at_once_lose_nothing(home):
    with ThreadPoolExecutor(2) as pool:  # each has a connection of its own to the lock, as two processes have
        list(pool.map(lambda number: keyring.trust(key(number).did, f"Class {number}"), range(1, 25)))
    assert len(keyring.trusted()) == 24


def test_a_home_that_cannot_be_written_is_said(home):
    home.parent.mkdir(exist_ok=True)
    home.write_text("no folder")
    with pytest.raises(OSError, match="File exists"):
        keyring.trust(key().did, "X")


@pytest.mark.parametrize("raw", ["", "[]", "{", '{"did:web:x": "X"}', '{"a": 1, "a": 2}', "null", '{"DID": 3}'])
def test_a_damaged_keyring_trusts_nobody_and_says_so(home, raw):
    keyring.trust(key().did, "X")
    (home / keyring.FILE_NAME).write_text(raw.replace("DID", key().did))
    with pytest.raises(CertificateError, match="damaged"):
        keyring.trusted()


def test_a_key_that_signs_does_not_show_itself():
    assert isinstance(key(), SigningKey)
    private = key().private.private_bytes_raw()
    assert private.hex() not in repr(key()) and repr(private) not in repr(made())
