"""The museum of real bugs: each exhibit is one public bug, rebuilt small, with the number that gives it away.

`collection.exhibits` finds the files in `exhibits/`, `visit.run_exhibit` runs one and tells it. One file is one class:
a `LoopExhibit`, `ModelExhibit` or `TapeExhibit` of `kinds`, after the instrument that finds the bug. What their loops
run on is a `scene.Scene`; `measures` has the numbers that several exhibits give.
"""
