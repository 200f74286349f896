"""One module per topic: its experiment, its figure and its explorer, side by side."""
