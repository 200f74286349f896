"""What `make bench` runs: how fast the explorers, the loops, the commands and the diagnosis are.

A benchmark is a function `name(quick: bool) -> list[Row]`. The first line of its docstring is its title, the rest
says what is measured and how; both are printed in docs/benchmarks.md. What is compared is measured in turns, so
that a busy moment of the machine falls on all sides alike, and medians are shown.
"""
