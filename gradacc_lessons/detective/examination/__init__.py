"""How `examine` looks at a model and its loss: by running them under changed conditions, one change at a time."""
