"""Which release of the product this is."""

from importlib.metadata import PackageNotFoundError, version


def installed() -> str:
    try:
        return version("ade-drop")
    except PackageNotFoundError:
        return "unknown"
