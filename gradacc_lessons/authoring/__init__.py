"""What authors do to notebooks: fixed cells, execute, clean, check, publish. Learners never need this room."""
