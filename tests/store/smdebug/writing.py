"""A small writer of stores, byte by byte after the format and independent of the reader."""

from __future__ import annotations

import json
import struct
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

DTYPES = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
FOOTER = bytes.fromhex("b3c02d06")
MODES = {"TRAIN": 1, "EVAL": 2, "PREDICT": 3, "GLOBAL": 4}


def varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field_number: int, value: int) -> bytes:
    return varint(field_number << 3) + varint(value) if value else b""


def tensor_bytes(value: NDArray[Any], name: str) -> bytes:
    dims = [number(1, size) + message(2, f"{name}_{size}".encode()) for size in value.shape]
    shape = message(2, b"".join(message(2, dim) for dim in dims))
    if value.dtype.kind in "UO":
        return shape + b"".join(message(8, str(text).encode()) for text in value.reshape(-1))
    content = np.ascontiguousarray(value).tobytes()
    return number(1, DTYPES[value.dtype.name]) + shape + (message(4, content) if content else b"")


def record(name: str, value: NDArray[Any], *, step: int, mode: str, mode_step: int, time_s: float) -> bytes:
    plugins = (("mode_step", str(mode_step)), ("mode", str(MODES[mode])))
    metadata = b"".join(message(1, message(1, k.encode()) + message(2, v.encode())) for k, v in plugins)
    content = message(1, name.encode()) + message(8, tensor_bytes(value, name)) + message(9, metadata)
    event = b"\x09" + struct.pack("<d", time_s) + number(2, step) + message(5, message(1, content))
    length = struct.pack("<Q", len(event))
    return length + struct.pack("<I", masked_crc(length)) + event + FOOTER


def masked_crc(data: bytes) -> int:
    """CRC-32C as TFRecord files have it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


@dataclass
class StoreWriter:
    """Writes one store; `collections` are written with the first step."""

    path: Path
    collections: dict[str, dict[str, Any]] = field(default_factory=dict)
    num_workers: int = 1
    time_s: float = 1.6e9

    def write(
        self,
        step: int,
        tensors: dict[str, Any],
        *,
        mode: str = "TRAIN",
        mode_step: int | None = None,
        worker: str = "worker_0",
        shapes: dict[str, tuple[int, ...]] | None = None,
    ) -> Path:
        """One step of one worker; returns the index file."""
        mode_step = step if mode_step is None else mode_step
        place = f"events/{step:012d}/{step:012d}_{worker}.tfevents"
        data, payload = b"", []
        for name, value in tensors.items():
            made = record(
                name,
                np.asarray(value),
                step=step,
                mode=mode,
                mode_step=mode_step,
                time_s=self.time_s + step,
            )
            payload.append({"tensorname": name, "start_idx": len(data), "length": len(made)})
            data += made
        meta = {"mode": mode, "mode_step": mode_step}
        if payload:
            meta["event_file_name"] = place
            write(self.path / place, data)
        index = {
            "meta": meta,
            "tensor_payload": payload,
            "shape_payload": [
                {"tensorname": name, "originalname": name.upper(), "shape": shape}
                for name, shape in (shapes or {}).items()
            ],
        }
        target = self.path / f"index/{step // 1000:09d}/{step:012d}_{worker}.json"
        write(target, json.dumps(index).encode())
        self.describe(worker)
        return target

    def describe(self, worker: str) -> None:
        described = {
            name: {
                "name": name,
                "include_regex": each.get("include_regex", []),
                "tensor_names": sorted(each.get("tensor_names", [])),
                "reduction_config": None,
                "save_config": {},
                "save_histogram": True,
            }
            for name, each in self.collections.items()
        }
        target = self.path / f"collections/000000000/{worker}_collections.json"
        value = {"collections": described, "_meta": {"num_workers": self.num_workers}}
        write(target, json.dumps(value).encode())

    def end(self) -> None:
        (self.path / "training_job_end.ts").touch()

    def live(self) -> None:
        """As a store is that is being written now."""
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "claim.smd").touch()
        self.time_s = time.time()


def write(path: Path, data: bytes) -> None:
    """Aside first, as smdebug does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_bytes() == data:
        return
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(data)
    temporary.replace(path)
