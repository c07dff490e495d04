"""The one error that reading raises, and its message for each reason."""


class InputUnreadable(Exception):
    """A file cannot be read as a spreadsheet: ``code`` for machines, ``message`` and ``remedy`` for people.

    Neither text ever contains a cell's value.
    """

    def __init__(self, code: str, message: str, remedy: str) -> None:
        """Say in sentences what is wrong with the file, and what to do."""
        super().__init__(f"{message} {remedy}")
        self.code = code
        self.message = message
        self.remedy = remedy

    def __reduce__(self) -> tuple[type["InputUnreadable"], tuple[str, str, str]]:
        return (InputUnreadable, (self.code, self.message, self.remedy))


SAVE_AGAIN = "Open it in a spreadsheet program, save it as .xlsx and drop it again."
SEND_AGAIN = "Send the file again; if the error persists, export it again from the program that made it."


def empty() -> InputUnreadable:
    """Make the error for a file without bytes."""
    return InputUnreadable("empty", "The file is empty (0 bytes).", SEND_AGAIN)


def no_content() -> InputUnreadable:
    """Make the error for a file of zero bytes only."""
    return InputUnreadable("empty", "The file contains only zero bytes.", "Send the file again.")


def encrypted(what: str) -> InputUnreadable:
    """Make the error for a file that is protected with a password."""
    return InputUnreadable(
        "encrypted",
        f"The file is {what} protected with a password.",
        "Remove the password (in Excel: File, Info, Protect Workbook, Encrypt with Password, clear it) "
        "and drop it again.",
    )


def truncated(what: str) -> InputUnreadable:
    """Make the error for a file that was cut; `what` it is: `a zip`."""
    return InputUnreadable("truncated", f"The file is {what} that ends too early.", "Upload the whole file again.")


def not_a_spreadsheet(what: str, remedy: str = SAVE_AGAIN) -> InputUnreadable:
    """Make the error for a file of another kind; `what` it is: `a PDF document`."""
    return InputUnreadable("not_a_spreadsheet", f"The file is {what}, not a spreadsheet.", remedy)


def unsupported(what: str, remedy: str = SAVE_AGAIN) -> InputUnreadable:
    """Make the error for a spreadsheet that we cannot read; `what` it is."""
    return InputUnreadable("unsupported", f"The file is {what}, a format that is not supported.", remedy)


def damaged(what: str) -> InputUnreadable:
    """Make the error for a file that contradicts its format; `what` is wrong."""
    return InputUnreadable("damaged", f"The file is damaged: {what}.", SAVE_AGAIN)


def hostile(what: str) -> InputUnreadable:
    """Make the error for a file that no spreadsheet program wrote."""
    return InputUnreadable(
        "hostile",
        f"The file was not written by a spreadsheet program: {what}.",
        SAVE_AGAIN,
    )


def too_large(what: str) -> InputUnreadable:
    """Make the error for a file that exceeds a limit."""
    return InputUnreadable(
        "too_large",
        f"The file is too large: {what}.",
        "Split the data into smaller files and drop them together.",
    )


def too_wide(what: str) -> InputUnreadable:
    """Make the error for a file with too many columns."""
    return InputUnreadable(
        "too_large",
        f"The file is too wide: {what}.",
        "Check that reading.delimiter is the file's delimiter, or remove columns that nobody needs.",
    )
