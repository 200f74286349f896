"""A class: its roster and codes, what learners hand in, and how that is graded again from the answers alone.

From the ground up: codes, roster, class_folder · submission, joining · inbox, sandbox · results · grading, grade_folder.
"""
