"""Check the contract: how protos/ is written, and that nothing that clients rely on was taken away.

The breaking-change check compares facts, one a line: fields with number and type, RPCs with their messages,
enum values. tools/proto_baseline.txt has the facts that were true at the last `make gen`. A fact of the
baseline that no longer holds is a break; a new one is added by `make gen` (`--update`), which refuses while
there are breaks. A break on purpose is written with `--accept-breaking`, and stands out in review as
removed lines.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
)

from tools.gen_protos import PROTOS, run_protoc, sources

BASELINE = Path(__file__).parent / "proto_baseline.txt"

# Field numbers of descriptor.proto: the place of a comment is made of them (SourceCodeInfo.Location.path).
FILE_MESSAGE, FILE_SERVICE, SERVICE_METHOD, MESSAGE_NESTED = 4, 6, 2, 3


def load(protos: Path) -> list[FileDescriptorProto]:
    """Return the descriptors of the API's files, with comments."""
    if not sources(protos):
        return []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "api.binpb"
        run_protoc(protos, "--include_source_info", f"--descriptor_set_out={out}")
        return list(FileDescriptorSet.FromString(out.read_bytes()).file)


def lint(files: Sequence[FileDescriptorProto]) -> list[str]:
    """Return what is wrong with how the files are written, one complaint a string."""
    uses = Counter(
        name
        for file in files
        for service in file.service
        for method in service.method
        for name in (method.input_type, method.output_type)
    )
    return [f"{file.name}: {complaint}" for file in files for complaint in _lint_file(file, uses)]


def _lint_file(file: FileDescriptorProto, uses: Counter[str]) -> Iterator[str]:
    directory = PurePosixPath(file.name).parent.as_posix().replace("/", ".")
    if file.package != directory:
        yield f"package {file.package} is not its directory {directory}"
    places = file.source_code_info.location
    commented = {tuple(place.path) for place in places if place.leading_comments.strip()}
    for index, service in enumerate(file.service):
        for at, method in enumerate(service.method):
            if (FILE_SERVICE, index, SERVICE_METHOD, at) not in commented:
                yield f"rpc {service.name}.{method.name} has no comment (effect, idempotency, errors)"
            for complaint in _lint_method(file.package, method, uses):
                yield f"rpc {service.name}.{method.name} {complaint}"
    for message, name, path in _messages(file):
        if path not in commented:
            yield f"message {name} has no comment"
        for enum in message.enum_type:
            yield from _lint_enum(enum)
    for enum in file.enum_type:
        yield from _lint_enum(enum)


def _lint_method(package: str, method: MethodDescriptorProto, uses: Counter[str]) -> Iterator[str]:
    for suffix, used in (("Request", method.input_type), ("Response", method.output_type)):
        own = f".{package}.{method.name}{suffix}"
        if used != own:
            yield f"uses {used}, not a message of its own, {own}"
        elif uses[used] > 1:
            yield f"shares {used} with another rpc"


def _lint_enum(enum: EnumDescriptorProto) -> Iterator[str]:
    zero = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", enum.name).upper() + "_UNSPECIFIED"
    if enum.value[0].number != 0 or enum.value[0].name != zero:
        yield f"enum {enum.name} does not start with {zero} = 0"


def _messages(file: FileDescriptorProto) -> Iterator[tuple[DescriptorProto, str, tuple[int, ...]]]:
    """Yield every message a person wrote (so not the entries of maps), its name, its place in the file."""
    rest: list[tuple[DescriptorProto, str, tuple[int, ...]]] = [
        (message, message.name, (FILE_MESSAGE, at)) for at, message in enumerate(file.message_type)
    ]
    while rest:
        message, name, path = rest.pop(0)
        if message.options.map_entry:
            continue
        yield message, name, path
        rest += [
            (nested, f"{name}.{nested.name}", (*path, MESSAGE_NESTED, at))
            for at, nested in enumerate(message.nested_type)
        ]


def facts(files: Sequence[FileDescriptorProto]) -> list[str]:
    """Return what the wire depends on, sorted, one fact a line."""
    return sorted(fact for file in files for fact in _facts_of_file(file))


def _facts_of_file(file: FileDescriptorProto) -> Iterator[str]:
    for service in file.service:
        for method in service.method:
            takes, gives = ("stream " * flag for flag in (method.client_streaming, method.server_streaming))
            yield (
                f"rpc {file.package}.{service.name}.{method.name}"
                f" ({takes}{method.input_type[1:]}) returns ({gives}{method.output_type[1:]})"
            )
    for enum in file.enum_type:
        yield from _facts_of_enum(file.package, enum)
    for message, name, _ in _messages(file):
        full = f"{file.package}.{name}"
        for field in message.field:
            yield f"field {full}.{field.name} = {field.number} {_type_of(field, message)}"
        for enum in message.enum_type:
            yield from _facts_of_enum(full, enum)


def _facts_of_enum(scope: str, enum: EnumDescriptorProto) -> Iterator[str]:
    for value in enum.value:
        yield f"value {scope}.{enum.name}.{value.name} = {value.number}"


def _type_of(field: FieldDescriptorProto, message: DescriptorProto) -> str:
    for entry in message.nested_type:
        if entry.options.map_entry and field.type_name.endswith(f".{message.name}.{entry.name}"):
            key, value = entry.field
            return f"map<{_type_of(key, entry)}, {_type_of(value, entry)}>"
    base = field.type_name[1:] or FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    if field.proto3_optional:
        return f"optional {base}"
    if field.HasField("oneof_index"):
        return f"oneof {message.oneof_decl[field.oneof_index].name} {base}"
    repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    return f"repeated {base}" if repeated else base


def breaks(baseline: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return the facts of the baseline that no longer hold."""
    return [fact for fact in baseline if fact not in set(now)]


def read_baseline(path: Path) -> list[str]:
    """Return the facts in the file, none if it does not exist yet."""
    return path.read_text().splitlines() if path.exists() else []


def main() -> int:
    """Report; with --update, bring the baseline up to date."""
    parser = argparse.ArgumentParser(description="Check protos/.")
    parser.add_argument("--update", action="store_true", help="add new facts to the baseline")
    parser.add_argument("--accept-breaking", action="store_true", help="make protos/ the baseline")
    options = parser.parse_args()
    files = load(PROTOS)
    now, baseline = facts(files), read_baseline(BASELINE)
    complaints = [] if options.update else lint(files)
    if not options.accept_breaking:
        complaints += [f"breaking: no longer true: {fact}" for fact in breaks(baseline, now)]
    if (options.update or options.accept_breaking) and not complaints:
        BASELINE.write_text("".join(f"{fact}\n" for fact in now))
    elif set(now) - set(baseline):
        complaints.append("tools/proto_baseline.txt lacks new facts; run `make gen`")
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
