"""The one way to say no."""


class BadOutput(Exception):
    """The box wrote something that may not be published. The message holds no text of the box's."""
