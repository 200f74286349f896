"""The mistakes, one module per kind."""
