"""Installs the wheels of a requirements.txt inside a box, because wheels are untrusted; layers.py keeps the results."""
