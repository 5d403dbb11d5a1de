"""What pictures of runs show, as data: the same lines, names and colours for files, pages and terminals."""
