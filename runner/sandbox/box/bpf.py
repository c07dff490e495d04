"""A small assembler for the filters of seccomp: classic BPF over one system call."""

import struct

ALLOW = 0x7FFF0000
KILL = 0x80000000
_ERRNO = 0x00050000

_LOAD, _JUMP, _JEQ, _JGE, _JSET, _RET = 0x20, 0x05, 0x15, 0x35, 0x45, 0x06
_NR, _ARCH, _ARGS = 0, 4, 16  # offsets in struct seccomp_data


def errno(number: int) -> int:
    """The answer that makes a call fail with this error."""
    return _ERRNO | number


class Program:
    """Instructions in order. Every block ends in an answer or falls through, so jumps stay short."""

    def __init__(self) -> None:
        self.code: list[tuple[int, int, int, int]] = []
        self.marks: dict[str, list[int]] = {}

    def answer(self, value: int) -> None:
        self._add(_RET, 0, 0, value)

    def load_arch(self) -> None:
        self._add(_LOAD, 0, 0, _ARCH)

    def load_number(self) -> None:
        self._add(_LOAD, 0, 0, _NR)

    def load_arg(self, index: int, *, high: bool = False) -> None:
        """The low (or high) half of an argument; both machines we know are little-endian."""
        self._add(_LOAD, 0, 0, _ARGS + 8 * index + (4 if high else 0))

    def answer_unless(self, value: int, answer: int) -> None:
        """Answer unless what is loaded equals `value`."""
        self._add(_JEQ, 1, 0, value)
        self.answer(answer)

    def answer_if(self, value: int, answer: int, *, mark: str | None = None) -> None:
        """Answer if what is loaded equals `value`; `mark` names the value for `patched`."""
        if mark is not None:
            self.marks.setdefault(mark, []).append(len(self.code))
        self._add(_JEQ, 0, 1, value)
        self.answer(answer)

    def answer_from(self, value: int, answer: int) -> None:
        """Answer if what is loaded is `value` or more."""
        self._add(_JGE, 0, 1, value)
        self.answer(answer)

    def answer_if_bits(self, bits: int, answer: int) -> None:
        """Answer if any of `bits` is set in what is loaded."""
        self._add(_JSET, 0, 1, bits)
        self.answer(answer)

    def only_for(self, number: int, block: "Program") -> None:
        """`block` for this call; it must end in an answer, so that nothing falls out of it."""
        self._add(_JEQ, 0, len(block.code), number)
        self.append(block)

    def choose(self, outcomes: "dict[int, int | Program]", otherwise: int) -> None:
        """Look up what is loaded: an answer, or a block that ends in one.

        A binary search over runs of equal outcomes: the kernel compiles a filter anew for every box, and walks it for
        every number that there is, so that its length is time.
        """
        starts: list[tuple[int, int | Program]] = [(0, otherwise)]
        for number in sorted(outcomes):
            if starts[-1][0] == number:
                starts.pop()
            if not starts or starts[-1][1] != outcomes[number]:
                starts.append((number, outcomes[number]))
            starts.append((number + 1, otherwise))
        self.append(_search(starts))

    def append(self, block: "Program") -> None:
        for name, places in block.marks.items():
            self.marks.setdefault(name, []).extend(len(self.code) + place for place in places)
        self.code += block.code

    def assembled(self) -> bytes:
        """The program as the kernel takes it."""
        return b"".join(struct.pack("=HBBI", *instruction) for instruction in self.code)

    def patched(self, assembled: bytes, **marks: int) -> bytes:
        """An assembled program with the marked values filled in."""
        raw = bytearray(assembled)
        for name, value in marks.items():
            for place in self.marks.get(name, ()):
                struct.pack_into("=I", raw, 8 * place + 4, value & 0xFFFFFFFF)
        return bytes(raw)

    def _add(self, op: int, yes: int, no: int, value: int) -> None:
        if max(yes, no) > 255:
            raise ValueError("a jump of more than 255 instructions")
        self.code.append((op, yes, no, value & 0xFFFFFFFF))

    def split(self, value: int, below: "Program", above: "Program") -> None:
        """One block where what is loaded is less than `value`, and another from there on."""
        if len(below.code) <= 255:
            self._add(_JGE, len(below.code), 0, value)
        else:
            self._add(_JGE, 0, 1, value)
            self._add(_JUMP, 0, 0, len(below.code))
        self.append(below)
        self.append(above)


def _search(starts: "list[tuple[int, int | Program]]") -> Program:
    """The outcome of the last start that is not above what is loaded."""
    found = Program()
    if len(starts) > 1:
        half = len(starts) // 2
        found.split(starts[half][0], _search(starts[:half]), _search(starts[half:]))
    elif isinstance(starts[0][1], int):
        found.answer(starts[0][1])
    else:
        found.append(starts[0][1])
    return found
