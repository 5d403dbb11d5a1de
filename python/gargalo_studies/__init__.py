"""Published experiments as studies: each is a package with a `STUDY`, which an entry point names in `pyproject.toml`.

They stand on the public names of `gargalo` alone, as a study in a package of anybody's does.
"""
