"""The contract's file formats, written simply; and the toy's model, two FP32 tensors."""

import decimal
import hashlib
import json
import struct
import sys

SIZE = 64


def fail(message, code=1):
    """One sentence on standard error, and the exit status."""
    print(f"toy trainer: {message}", file=sys.stderr, flush=True)
    sys.exit(code)


def canonical(value):
    if isinstance(value, float):
        if value == int(value):
            return str(int(value))
        small = 1e-6 <= abs(value) < 1e-4
        text = format(decimal.Decimal(repr(value)), "f") if small else repr(value)
        return text.replace("e-0", "e-")
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(k)}:{canonical(value[k])}" for k in sorted(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def digest(data):
    return hashlib.sha256(data if isinstance(data, bytes) else canonical(data).encode()).hexdigest()


def write(path, data):
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data if isinstance(data, bytes) else (canonical(data) + "\n").encode())
    temporary.replace(path)


def write_lines(path, rows):
    write(path, "".join(canonical(row) + "\n" for row in rows).encode())


def read_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def tree_hash(root):
    rows = []
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        hidden = any(p.startswith(".") or p == "__pycache__" for p in parts)
        if path.is_file() and not hidden and path.suffix != ".pyc":
            data, mode = path.read_bytes(), "755" if path.stat().st_mode & 0o100 else "644"
            name = "/".join(parts)
            rows.append({"path": name, "sha256": digest(data), "bytes": len(data), "mode": mode})
    return digest(sorted(rows, key=lambda row: row["path"].encode()))


def save_model(folder, vector, quality):
    """`quality`: [updates done, thousandths of lookup examples that were right]."""
    folder.mkdir(parents=True, exist_ok=True)
    header, body = {}, b""
    for name, values in (("quality", quality), ("vector", vector)):
        raw = struct.pack(f"<{len(values)}f", *values)
        place = [len(body), len(body) + len(raw)]
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": place}
        body += raw
    text = canonical(header).encode()
    text += b" " * (-len(text) % 8)
    write(folder / "model.safetensors", struct.pack("<Q", len(text)) + text + body)


def load_model(folder):
    """({name: values}, parameter root)."""
    data = (folder / "model.safetensors").read_bytes()
    length = 8 + struct.unpack("<Q", data[:8])[0]
    tensors, rows = {}, []
    for name, entry in sorted(json.loads(data[8:length]).items()):
        begin, end = entry["data_offsets"]
        raw = data[length + begin : length + end]
        tensors[name] = struct.unpack(f"<{len(raw) // 4}f", raw)
        rows.append({k: entry[k] for k in ("dtype", "shape")} | {"name": name})
        rows[-1]["sha256"] = digest(raw)
    return tensors, digest(rows)
