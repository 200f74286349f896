"""Banks for a learning management system: Moodle XML, and QTI 1.2 as Canvas reads it."""
