"""A class: its roster and codes, what learners hand in, and how that is graded again from the answers alone."""
