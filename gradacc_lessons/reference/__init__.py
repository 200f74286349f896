"""Short reference code, a slide each, proven against the full batch."""
