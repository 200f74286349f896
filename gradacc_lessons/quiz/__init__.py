"""What is asked, how it is graded, and how it is shown."""
