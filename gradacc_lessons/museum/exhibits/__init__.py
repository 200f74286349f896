"""One file, one bug. A file's name is the project and the number of the thread."""
