"""What is said when a folder has been graded."""

from collections import Counter
from collections.abc import Iterable, Iterator

from gradacc_lessons.classroom.grade_folder import Summary
from gradacc_lessons.classroom.report_words import STATUS
from gradacc_lessons.classroom.results import FileResult
from gradacc_lessons.text import Text, counted, joined


def summary(graded: Summary) -> Text:
    """How many files have which status, how code was run, and where the results are."""
    return joined(_lines(graded), "\n")


def about_code(results: Iterable[FileResult]) -> Iterator[Text]:
    """How code was run, where that matters to those who go by the grades."""
    ran = Counter(each.code for each in results)
    if refused := ran["refused"]:
        yield Text(
            f"Files with code that was not run, for want of a sandbox: {refused}. That code counts for nothing.",
            f"Bestanden met code die bij gebrek aan een sandbox niet is uitgevoerd: {refused}. Die code telt niet mee.",
        )
    if unsafe := ran["unsafe"]:
        yield Text(
            f"Files with code that was run without a sandbox: {unsafe}. It could reach your files and the grading.",
            f"Bestanden met code die zonder sandbox is uitgevoerd: {unsafe}. Die kon bij je bestanden en bij het "
            "nakijken.",
        )


def _lines(graded: Summary) -> Iterator[Text]:
    if graded.resumed:
        yield Text(
            f"Before the interruption {counted(graded.resumed, 'file')} had been graded.",
            f"Al nagekeken vóór de onderbreking: {graded.resumed}.",
        )
    each = [Text(f"{count} {STATUS[of].en}", f"{count} {STATUS[of].nl}") for of, count in sorted(graded.counts.items())]
    yield joined(each, ", ") if each else Text("There was no file.", "Er was geen bestand.")
    if graded.code == "refused":
        yield Text(
            f"Code was not run, and counts for nothing: {graded.why_no_sandbox}.",
            f"Code is niet uitgevoerd en telt voor niets: {graded.why_no_sandbox}.",
        )
    if graded.code == "unsafe":
        yield Text(
            f"Code was run WITHOUT a sandbox: {graded.why_no_sandbox}.",
            f"Code is ZONDER sandbox uitgevoerd: {graded.why_no_sandbox}.",
        )
    yield Text(f"The results are in {graded.file}", f"De resultaten staan in {graded.file}")
