"""What `trace` writes down and how it is read: hooks, gradients, events, windows, findings, picture."""
