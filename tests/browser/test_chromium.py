"""Where no browser is installed: a learner's tests go on and say what to install, continuous integration fails."""

import pytest
from browser.chromium import ON_A_MAC, installed_browser

SENTENCE = "^no Chromium or Chrome is installed, and these tests drive one; for example: "


@pytest.fixture
def no_browser(monkeypatch, tmp_path):
    if any(app.exists() for app in ON_A_MAC):
        pytest.skip("on a Mac the browser does not stand on the path")
    monkeypatch.setenv("PATH", str(tmp_path))


@pytest.mark.parametrize("ci", [None, "", "false", "0"])
def test_a_learner_is_told_what_to_install_and_goes_on(no_browser, monkeypatch, ci):
    monkeypatch.delenv("CI", raising=False) if ci is None else monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.skip.Exception, match=SENTENCE):
        installed_browser()


@pytest.mark.parametrize("ci", ["true", "1"])
def test_continuous_integration_fails(no_browser, monkeypatch, ci):
    monkeypatch.setenv("CI", ci)
    with pytest.raises(pytest.fail.Exception, match=SENTENCE):
        installed_browser()


def test_one_that_is_on_the_path_is_found(no_browser, tmp_path):
    browser = tmp_path / "google-chrome"
    browser.touch(mode=0o755)
    assert installed_browser() == str(browser)
