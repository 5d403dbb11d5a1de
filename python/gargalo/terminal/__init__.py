"""What the terminal shows: plain text, tables and progress by Rich."""
