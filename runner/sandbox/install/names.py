"""Names of files in archives that stay below the folder they are unpacked into, and the name of the archive itself."""

ARCHIVE = "layer.zip"


def safe_name(name: str) -> bool:
    """Whether `name` is a plain relative path of moderate length."""
    parts = name.split("/")
    return (
        0 < len(name) <= 1000
        and all(part not in {"", ".", ".."} and len(part.encode()) <= 255 for part in parts)
        and not any(char in name for char in "\\\0\n\r")
    )
