"""The process that works on what others wrote: a caller's schema, a model's answer.

A schema may hold a pattern that a text makes run for ever, or references that multiply, and Python
can stop neither from within. So this runs as a process of its own (`judge_process` starts it), with
a bound on its processor time and its memory: one order as JSON on stdin, one report on stdout. If
it ends in any other way, there is no judgement.
"""

from __future__ import annotations

import json
import signal
import sys
from itertools import islice
from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_CORE, getrlimit, setrlimit
from typing import TYPE_CHECKING, Any, cast

from jsonschema import Draft202012Validator, SchemaError
from referencing import Registry, Resource
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from opencode_mcp.engine.json_in_text import Found, Lack, find_json
from opencode_mcp.engine.schema_rules import pointer, references

if TYPE_CHECKING:
    from jsonschema import ValidationError

#: address space, in bytes: some ten times what the largest answer takes
MEMORY_BYTES = 2 * 1024**3
#: so many faults are told of an answer that does not fit
_FAULTS = 3

_LACKS = {
    Lack.NO_JSON: "the answer holds no JSON object or array",
    Lack.MALFORMED: "what the answer gives as JSON is not valid JSON",
    Lack.TOO_DEEP: "the answer's JSON is nested too deep",
}


def check(schema: dict[str, Any]) -> dict[str, str]:
    """Say what makes `schema` no JSON Schema of 2020-12: `where` and `why`; empty: nothing."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        where = pointer(tuple(error.absolute_path))
        return {"where": where, "why": f"is no JSON Schema of 2020-12 ({error.validator})"}
    resolver = _registry(schema).resolver()
    for where, target in references(schema):
        try:
            resolver.lookup(target)
        except (Unresolvable, ValueError, AttributeError, TypeError):
            # the library raises the latter where a pointer leads through what is no schema
            return {"where": where, "why": "refers to something that the schema does not have"}
    return {}


def judge(schema: dict[str, Any], answer: str) -> dict[str, str]:
    """Find the JSON of an answer and say whether it fits.

    `status` valid has the value as compact JSON in `json`; missing and invalid have a `code` and a
    `message`, which tells places and no values.
    """
    found = find_json(answer)
    if not isinstance(found, Found):
        status = "missing" if found is Lack.NO_JSON else "invalid"
        return {"status": status, "code": found.value, "message": _LACKS[found]}
    # a registry of our own: the default one would fetch what it does not have
    validator = Draft202012Validator(schema, registry=_registry(schema))
    faults = list(islice(validator.iter_errors(found.value), _FAULTS + 1))
    if not faults:
        return {"status": "valid", "json": found.json}
    told = [*map(_told, faults[:_FAULTS]), *(["and more"] if len(faults) > _FAULTS else [])]
    return {"status": "invalid", "code": "SCHEMA_MISMATCH", "message": "; ".join(told)}


def _registry(schema: dict[str, Any]) -> Registry[Any]:
    """Return where references are looked up: in the schema, and nowhere else."""
    resource: Resource[Any] = DRAFT202012.create_resource(schema)
    found: Registry[Any] = Registry().with_resource("", resource)
    return found


def _told(fault: ValidationError) -> str:
    """Return what does not fit, as a place in the answer's value and one in the schema."""
    rule = pointer(tuple(fault.absolute_schema_path))
    path = tuple(fault.absolute_path)
    if fault.validator == "required":  # one fault for each name, which only the message tells
        for name in cast("list[str]", fault.validator_value):
            if fault.message.startswith(f"{name!r} "):
                return f"{pointer((*path, name))} is missing ({rule} of the schema)"
    return f"{pointer(path)} does not fit {rule} of the schema"


def _bound_memory() -> None:
    """Let the kernel refuse this process what it may not have."""
    setrlimit(RLIMIT_CORE, (0, 0))
    _, most = getrlimit(RLIMIT_AS)
    if most == RLIM_INFINITY or most > MEMORY_BYTES:
        setrlimit(RLIMIT_AS, (MEMORY_BYTES, most))


def main() -> None:
    """Carry out the order on stdin."""
    _bound_memory()
    order = json.load(sys.stdin)
    signal.setitimer(signal.ITIMER_PROF, order["cpu_s"])  # SIGPROF, which nobody catches, ends it
    schema = json.loads(order["schema"])
    report = check(schema) if order["answer"] is None else judge(schema, order["answer"])
    json.dump(report, sys.stdout)


if __name__ == "__main__":
    main()
