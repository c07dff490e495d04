"""What both sides know about the archive in which a layer leaves the box of its installer."""

ARCHIVE = "layer.zip"


def safe_name(name: str) -> bool:
    """Whether `name` is a plain relative path of moderate length."""
    parts = name.split("/")
    return (
        0 < len(name) <= 1000
        and all(part not in {"", ".", ".."} and len(part.encode()) <= 255 for part in parts)
        and not any(char in name for char in "\\\0\n\r")
    )
