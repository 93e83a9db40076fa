"""What lies in an image of a GPU's machine code: its functions, and numbers in them that nobody can have meant.

NVVM, by which nvcc and NVRTC optimise, takes what it believes nobody has stored for a NaN of its own, and goes on with
that; the kernels have no NaN of theirs. Seen with 13.0: of a Humanoid's inverse dynamics one component of a force was
lost so, in loops over its links.
"""

from __future__ import annotations

import struct

#: The NaN that it takes, as the 32 bits of an instruction that are a constant.
UNDEFINED = 0x7FC00000


def functions(image: bytes) -> dict[str, bytes]:
    """name -> its code, from the sections .text.<name> of a 64-bit ELF file."""
    table = struct.unpack_from("<Q", image, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", image, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", image, table + i * size) for i in range(count)]
    strings, found = sections[names][4], {}
    for section in sections:
        start = strings + section[0]
        name = image[start : image.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found[name.removeprefix(".text.")] = image[section[4] : section[4] + section[5]]
    return found


def undefined_in(image: bytes) -> list[str]:
    """The functions with an instruction, of 16 bytes, that takes that NaN for a constant."""
    return sorted(
        name
        for name, code in functions(image).items()
        if any(high == UNDEFINED for _, high, _, _ in struct.iter_unpack("<IIII", code[: len(code) // 16 * 16]))
    )
