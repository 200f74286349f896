"""What is said when a class's certificates are issued."""

from collections.abc import Mapping, Sequence

from gradacc_lessons.certificate.credential import Credential, Kind
from gradacc_lessons.progress_records import percent
from gradacc_lessons.text import Text, joined

NOTHING = Text("", "")
HEADING = (
    Text("id", "id"),
    Text("name", "naam"),
    Text("certificate", "certificaat"),
    Text("certificate id", "certificaat-id"),
    Text("issued on", "uitgegeven op"),
    Text("files", "bestanden"),
    Text("remark", "opmerking"),
)
KIND: Mapping[Kind, Text] = {
    "core": Text("core", "basis"),
    "full": Text("full", "volledig"),
    "lessons": Text("lessons", "lessen"),
}
NO_FILE = Text("No file was graded.", "Er is geen bestand nagekeken.")
NO_NAME = Text(
    "Earned, but not issued: the roster has no name for this learner. Put it there, and run this again.",
    "Gehaald, maar niet uitgegeven: deze leerling heeft geen naam in roster.csv. Zet die erin en doe dit nog eens.",
)
ISSUES_TO_ITSELF = Text(
    "Earned, but not issued: the issuer has the same name, so it would read like a certificate that the learner "
    "issued. Choose another name with --as.",
    "Gehaald, maar niet uitgegeven: de uitgever heet net zo, dus het zou lijken alsof de leerling het zelf heeft "
    "uitgegeven. Kies een andere naam met --as.",
)


def look_first(same_work: Text) -> Text:
    """Grading cannot tell whose work it is."""
    held = Text(
        "Earned, but not issued until you have looked:", "Gehaald, maar niet uitgegeven voordat je hebt gekeken:"
    )
    then = Text("Remove the copy and grade again.", "Haal de kopie weg en kijk opnieuw na.")
    return joined([held, same_work, then])


def in_the_way(file: str) -> Text:
    """A file that this teacher's key did not sign has the name that the certificate would have."""
    return Text(
        f"Earned, but not issued: {file} is there, and is no certificate by this class's key. Move it away, and run "
        "this again.",
        f"Gehaald, maar niet uitgegeven: {file} staat er al en is geen certificaat met de sleutel van deze klas. Zet "
        "het ergens anders neer en doe dit nog eens.",
    )


def stays(kept: Credential) -> Text:
    """An earlier certificate says something else than one that was issued now would."""
    on = f"{kept.valid_from:%Y-%m-%d}"
    return Text(
        f"Stays as it was issued on {on}, for {kept.name}, by {kept.issuer_name}; today it would say something else. "
        "To issue it anew, revoke it, remove its files and run this again.",
        f"Blijft zoals het op {on} is uitgegeven, voor {kept.name}, door {kept.issuer_name}; vandaag zou er iets "
        "anders in staan. Trek het in, verwijder de bestanden en doe dit nog eens om het opnieuw uit te geven.",
    )


def not_earned_now(kept: Credential, stem: str) -> Text:
    """An earlier certificate that these results do not earn."""
    on = f"{kept.valid_from:%Y-%m-%d}"
    return Text(
        f"Has {stem}, issued on {on}, which these results do not earn. It stays valid unless you revoke it.",
        f"Heeft {stem}, uitgegeven op {on}, en dat is met deze resultaten niet gehaald. Het blijft geldig, tenzij je "
        "het intrekt.",
    )


def missing(lacking: Sequence[tuple[str, float | None]]) -> Text:
    """Lessons that the core certificate lacks, each with its share of the points if it was handed in."""
    parts = [
        Text(f"{lesson} not handed in", f"{lesson} niet ingeleverd")
        if share is None
        else Text(*[f"{lesson} {percent(share)}%"] * 2)
        for lesson, share in lacking
    ]
    return joined(
        [Text("Missing for the core certificate:", "Voor het basiscertificaat ontbreekt:"), joined(parts, ", ")]
    )


def counts(of: Mapping[str, int]) -> Text:
    """How many of each."""
    said = {
        "issued": Text("issued", "uitgegeven"),
        "kept": Text("issued before", "al eerder uitgegeven"),
        "open": Text("not earned", "niet gehaald"),
        "held": Text("earned but not issued", "gehaald maar niet uitgegeven"),
    }
    parts = [joined([Text(str(number), str(number)), said[done]]) for done, number in of.items()]
    return joined([joined(parts, ", "), Text("", "")], ".")


def line(id: str, name: str, remark: Text) -> Text:
    """A remark, with whose it is."""
    who = f"{id} ({name})" if name else id
    return Text(f"  {who}: {remark.en}", f"  {who}: {remark.nl}")


def written(folder: str) -> Text:
    """Where they are, and how others trust them."""
    return Text(
        f"The certificates are in {folder}; certificates.csv lists them, and what others lack.",
        f"De certificaten staan in {folder}; in certificates.csv staat welke, en wat anderen missen.",
    )


def signed_with(did: str) -> Text:
    """The key, for whoever verifies."""
    return Text(f"They are signed with the key {did}", f"Ze zijn ondertekend met de sleutel {did}")
