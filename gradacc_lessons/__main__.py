"""`python -m gradacc_lessons` is the command `gradacc`."""

from gradacc_lessons.cli import main

main()
