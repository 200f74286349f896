"""The course's colours: Okabe and Ito's, told apart by most colour-blind readers, always with a second cue.

Source: Okabe & Ito, Color Universal Design (2008). Figures have a white ground of their own, so that they read
the same on a dark and on a light page.
"""

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
YELLOW = "#E69F00"
BLACK = "#000000"
GREY = "#6B6B6B"

RIGHT = BLUE
"""What is as it should be."""
WRONG = ORANGE
"""What has a mistake in it."""
GUESS = PURPLE
"""What the learner predicted."""
