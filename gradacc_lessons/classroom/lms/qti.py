"""QTI 1.2 in the form that Canvas imports: a zip of a manifest, the assessment, and Canvas's settings for it.

The sets of numbers of one question stand in a group from which Canvas picks one. Canvas has no feedback for one wrong
number: what the bank says to a recognised mistake follows, with the number, what it says to any wrong one. Hints have
no place in it either. Sources: IMS QTI 1.2.1 (ASI); the shape that Canvas reads and writes, as text2qti documents it.
"""

import hashlib
import io
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Sequence
from itertools import groupby

from gradacc_lessons.classroom.lms.items import LmsItem, Value
from gradacc_lessons.classroom.lms.markup import add, as_bytes, plain
from gradacc_lessons.quiz.formula import Number
from gradacc_lessons.quiz.grade import fill
from gradacc_lessons.text import Language, Text

QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
PACKAGE = "http://www.imsglobal.org/xsd/imsccv1p1/imscp_v1p1"
CANVAS = "http://canvas.instructure.com/xsd/cccv1p0"
META_TYPE = "associatedcontent/imscc_xmlv1p1/learning-application-resource"
LONG_AGO = (2020, 1, 1, 0, 0, 0)
"""The time of every file in the zip: the same bank gives the same bytes."""
IF_YOU_HAVE = Text("If you have {value}:", "Als je {value} hebt:")
RESPONSE = "response1"


def qti12(lesson: str, title: str, items: Sequence[LmsItem], language: Language) -> bytes:
    """The questions of one lesson as a zip to import."""
    name = f"gradacc_{lesson}_{language}"
    files = {
        "imsmanifest.xml": _manifest(name),
        f"{name}/assessment_meta.xml": _meta(name, title, items),
        f"{name}/{name}.xml": _assessment(name, title, items, language),
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path, LONG_AGO), content, zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def _manifest(name: str) -> bytes:
    root = ET.Element("manifest", {"identifier": f"{name}_manifest", "xmlns": PACKAGE})
    about = add(root, "metadata")
    add(about, "schema", "IMS Content")
    add(about, "schemaversion", "1.1.3")
    add(root, "organizations")
    resources = add(root, "resources")
    assessment = add(resources, "resource", identifier=name, type="imsqti_xmlv1p2")
    add(assessment, "file", href=f"{name}/{name}.xml")
    add(assessment, "dependency", identifierref=f"{name}_meta")
    href = f"{name}/assessment_meta.xml"
    add(add(resources, "resource", identifier=f"{name}_meta", type=META_TYPE, href=href), "file", href=href)
    return as_bytes(root)


def _meta(name: str, title: str, items: Sequence[LmsItem]) -> bytes:
    points = {item.question: item.points for item in items}
    root = ET.Element("quiz", {"identifier": name, "xmlns": CANVAS})
    settings = {
        "title": title, "shuffle_answers": "false", "scoring_policy": "keep_highest", "quiz_type": "assignment",
        "points_possible": plain(sum(points.values())), "show_correct_answers": "false", "allowed_attempts": "1",
        "available": "false",
    }  # fmt: skip
    for tag, text in settings.items():
        add(root, tag, text)
    return as_bytes(root)


def _assessment(name: str, title: str, items: Sequence[LmsItem], language: Language) -> bytes:
    root = ET.Element("questestinterop", {"xmlns": QTI})
    section = add(add(root, "assessment", ident=name, title=title), "section", ident="root_section")
    for question, group in groupby(items, key=lambda item: item.question):
        sets = list(group)
        place = section if len(sets) == 1 else _group(section, question, sets[0].points)
        for item in sets:
            _item(place, item, language)
    return as_bytes(root)


def _group(section: ET.Element, question: str, points: float) -> ET.Element:
    """A place from which the system takes one of its items."""
    group = add(section, "section", ident=_ident(f"group {question}"), title=question)
    selection = add(add(group, "selection_ordering"), "selection")
    add(selection, "selection_number", "1")
    add(add(selection, "selection_extension"), "points_per_item", plain(points))
    return group


def _item(place: ET.Element, item: LmsItem, language: Language) -> None:
    kind = "numerical_question" if item.right else f"multiple_{'answers' if item.several else 'choice'}_question"
    made = add(place, "item", ident=_ident(item.id), title=item.id)
    fields = add(add(made, "itemmetadata"), "qtimetadata")
    for label, entry in (("question_type", kind), ("points_possible", plain(item.points))):
        one = add(fields, "qtimetadatafield")
        add(one, "fieldlabel", label)
        add(one, "fieldentry", entry)
    presentation = add(made, "presentation")
    _material(presentation, item.prompt)
    processing = ET.Element("resprocessing")
    add(add(processing, "outcomes"), "decvar", maxvalue="100", minvalue="0", varname="SCORE", vartype="Decimal")
    if item.right:
        feedback = _number(presentation, processing, item, item.right, language)
    else:
        feedback = _picks(presentation, processing, item)
    made.append(processing)
    for ident, text in feedback.items():
        _material(add(add(made, "itemfeedback", ident=ident), "flow_mat"), text)


def _picks(presentation: ET.Element, processing: ET.Element, item: LmsItem) -> dict[str, str]:
    """The options, and how they are marked; the feedback to each."""
    cardinality = "Multiple" if item.several else "Single"
    choices = add(add(presentation, "response_lid", ident=RESPONSE, rcardinality=cardinality), "render_choice")
    feedback = {}
    for pick in item.picks:
        _material(add(choices, "response_label", ident=pick.id), pick.text)
        feedback[f"{pick.id}_fb"] = pick.feedback
        said = _condition(processing, more=True)
        add(said[1], "varequal", pick.id, respident=RESPONSE)
        add(said[0], "displayfeedback", feedbacktype="Response", linkrefid=f"{pick.id}_fb")
    scored, variables = _condition(processing, more=False)
    if item.several:
        variables = add(variables, "and")
    for pick in item.picks:
        if pick.right:
            add(variables, "varequal", pick.id, respident=RESPONSE)
        elif item.several:
            add(add(variables, "not"), "varequal", pick.id, respident=RESPONSE)
    add(scored, "setvar", "100", action="Set", varname="SCORE")
    return feedback


def _number(
    presentation: ET.Element, processing: ET.Element, item: LmsItem, right: Value, language: Language
) -> dict[str, str]:
    """A field for a number, and how it is marked; what is said to a right and to a wrong one."""
    field = add(add(presentation, "response_str", ident=RESPONSE, rcardinality="Single"), "render_fib")
    field.set("fibtype", "Decimal")
    add(field, "response_label", ident="answer1")
    scored, variables = _condition(processing, more=False)
    either = add(variables, "or")
    add(either, "varequal", plain(right.value), respident=RESPONSE)
    between = add(either, "and")
    add(between, "vargte", plain(right.value - right.margin), respident=RESPONSE)
    add(between, "varlte", plain(right.value + right.margin), respident=RESPONSE)
    add(scored, "setvar", "100", action="Set", varname="SCORE")
    add(scored, "displayfeedback", feedbacktype="Response", linkrefid="correct_fb")
    wrong, variables = _condition(processing, more=True)
    add(variables, "other")
    add(wrong, "displayfeedback", feedbacktype="Response", linkrefid="general_incorrect_fb")
    mistakes = [f"<p>{_if_you_have(each.value, language)} {each.feedback}</p>" for each in item.mistakes]
    return {"correct_fb": right.feedback, "general_incorrect_fb": "".join([f"<p>{item.otherwise}</p>", *mistakes])}


def _if_you_have(value: Number, language: Language) -> str:
    return fill(IF_YOU_HAVE, {"value": value}).to(language)


def _condition(processing: ET.Element, *, more: bool) -> tuple[ET.Element, ET.Element]:
    """A new condition and the place for what it looks at; `more` conditions are looked at after it."""
    made = add(processing, "respcondition")
    made.set("continue", "Yes" if more else "No")
    return made, add(made, "conditionvar")


def _material(parent: ET.Element, text: str) -> None:
    add(add(parent, "material"), "mattext", text, texttype="text/html")


def _ident(text: str) -> str:
    """An identifier that Canvas keeps apart from those of other banks."""
    return f"g{hashlib.sha256(text.encode()).hexdigest()[:31]}"
