"""Nobody waits for long without being told what for."""

import time

from gradacc_lessons.patience import patience


def test_what_is_quick_says_nothing():
    heard = []
    with patience(heard.append, after=5) as tell:
        tell("loading")
    assert heard == []


def test_what_takes_long_says_what_it_is_doing_and_from_then_on_each_thing():
    heard = []
    with patience(heard.append, after=0.05) as tell:
        tell("first")
        tell("second")
        deadline = time.monotonic() + 10
        while not heard and time.monotonic() < deadline:
            time.sleep(0.01)
        tell("third")
    assert heard == ["second ...", "third ..."]


def test_after_the_end_nothing_more_is_said():
    heard = []
    with patience(heard.append, after=0.05) as tell:
        tell("first")
    time.sleep(0.2)
    assert heard == []
