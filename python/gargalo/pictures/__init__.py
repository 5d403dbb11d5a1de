"""What pictures of runs show, as data: the same lines, names and colours for files, pages and terminals."""

from gargalo.extras import need

need("pictures", "matplotlib", "numpy")
