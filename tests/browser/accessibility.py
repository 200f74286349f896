"""What axe-core may find in our outputs: nothing but the name that ipywidgets gives no slider."""

from browser.lab import Lab

SLIDER_WITHOUT_A_NAME = "aria-input-field-name"


def check_accessibility(lab: Lab) -> None:
    """AssertionError lists what axe-core found besides sliders, or the slider that has no field of its name."""
    violations = lab.axe()
    others = {
        violation["id"]: [node["html"][:300] for node in violation["nodes"]]
        for violation in violations
        if violation["id"] != SLIDER_WITHOUT_A_NAME
    }
    assert not others, others
    for violation in violations:
        assert all('role="slider"' in node["html"] for node in violation["nodes"]), violation["nodes"]
    labels = lab.page.locator(".jp-OutputArea .widget-slider label").all_inner_texts()
    for label in labels:
        assert lab.number_field(f"{label} (number)").count(), f"the slider {label!r} has no number field of its name"
