"""Installs the wheels of a requirements.txt, inside a box: it reads archives that nobody has looked at."""
