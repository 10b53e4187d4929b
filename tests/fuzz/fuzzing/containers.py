"""Damage to a plan's file: bytes, zip members and their headers, the header of the weights."""

import io
import json
import struct
import warnings
import zipfile
from pathlib import Path
from random import Random

from fuzzing.damage import damaged


def damaged_file(random: Random, plan: Path) -> tuple[bytes, str]:
    """The bytes of a damaged file, and what was done."""
    data = plan.read_bytes()
    kinds = (_flipped, _flipped, _cut, _surrounded, _members, _members, _weights_header)
    return random.choice(kinds)(random, data)


def _flipped(random: Random, data: bytes) -> tuple[bytes, str]:
    made = bytearray(data)
    places = [random.randrange(len(made)) for _ in range(random.choice([1, 1, 2, 8, 64]))]
    if random.random() < 0.5:  # the directory of the zip is at its end
        places = [len(made) - 1 - random.randrange(min(len(made), 400)) for _ in places]
    for place in places:
        made[place] ^= 1 << random.randrange(8)
    return bytes(made), f"flipped bits at {places[:4]}"


def _cut(random: Random, data: bytes) -> tuple[bytes, str]:
    at = random.choice([0, 1, 22, random.randrange(len(data)), len(data) - 1])
    if random.random() < 0.3:
        other = random.randrange(len(data))
        return data[: min(at, other)] + data[max(at, other) :], "cut in the middle"
    return data[:at], f"cut at {at}"


def _surrounded(random: Random, data: bytes) -> tuple[bytes, str]:
    junk = random.choice([b"#!/bin/sh\n", b"\x00" * 100, b"PK\x03\x04", data[:50], b"x"])
    return (junk + data, "junk in front") if random.random() < 0.5 else (data + junk, "junk behind")


def _members(random: Random, data: bytes) -> tuple[bytes, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    index = random.randrange(len(members))
    name, content = members[index]
    method = zipfile.ZIP_STORED
    match random.randrange(7):
        case 0:
            del members[index]
        case 1:
            members.append((name, content))
        case 2:
            other = random.choice(
                ["../evil", "/etc/passwd", "models/x.onnx", "plan.json", name.upper(), ""]
            )
            members[index] = (other or "x", content)
        case 3:
            members[index] = (name, content[: random.randrange(len(content) + 1)])
        case 4:
            fitting = [f"kernels/{'0' * 64}.cubin", f"models/{'0' * 64}.onnx"]
            members.append((random.choice(["readme.txt", *fitting]), b"x"))
        case 5:
            method = random.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
        case _:
            random.shuffle(members)
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", method) as archive:
        warnings.simplefilter("ignore")  # two members of one name
        for each, text in members:
            archive.writestr(zipfile.ZipInfo(each), text, method)
    return stream.getvalue(), f"members: {name}"


def _weights_header(random: Random, data: bytes) -> tuple[bytes, str]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    weights = members["weights.safetensors"]
    (length,) = struct.unpack("<Q", weights[:8])
    header, words = damaged(random, json.loads(weights[8 : 8 + length]))
    text = json.dumps(header).encode()
    claimed = len(text) if random.random() < 0.85 else random.choice([0, 1, 2**31, 2**63, length])
    members["weights.safetensors"] = struct.pack("<Q", claimed) + text + weights[8 + length :]
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content)
    return stream.getvalue(), f"weights: {words}"
