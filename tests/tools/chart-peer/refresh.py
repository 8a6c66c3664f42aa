#!/usr/bin/env python3
"""Asks the peer for the answers of all cases under helm-rs/tests/chart_cases again.

    refresh.py PEER        rewrite the files
    refresh.py PEER check  only say which answers have changed

Requests and `differs` marks stay. Helm walks subcharts in random order, so that a few answers
change from run to run in the order of their lines.

A file is a list of cases, and of groups of cases about one chart: `common` is part of the request
of every case in its group. A case whose `kind` is a list is one request for each, with the same
answer. A number in an answer stands for the peer's ["f", "number"].
"""

import json
import pathlib
import subprocess
import sys

LEFT_OUT = ("raw", "files", "templates", "lock", "schema", "crds")
# Whole numbers up to here are exact as floats.
EXACT = 2**53


def slim(dump):
    """Leaves out of a chart what dependency processing does not touch."""
    for key in LEFT_OUT:
        dump.pop(key, None)
    for subchart in dump["deps"]:
        slim(subchart)


def plain_numbers(answer):
    """Writes whole floats as numbers."""
    if isinstance(answer, dict):
        return {key: plain_numbers(value) for key, value in answer.items()}
    if not isinstance(answer, list):
        return answer
    if len(answer) == 2 and answer[0] == "f" and answer[1].lstrip("-").isdigit():
        if abs(int(answer[1])) < EXACT and answer[1] != "-0":
            return int(answer[1])
    return [plain_numbers(value) for value in answer]


def single_cases(cases, common=()):
    """The cases of a file without groups and lists of kinds."""
    for case in cases:
        if "cases" in case:
            yield from single_cases(case["cases"], case["common"])
            continue
        request = {**dict(common), **case["request"]}
        kinds = request.get("kind")
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            single = request if kind is None else {**request, "kind": kind}
            yield {**case, "request": single}


def grouped(cases):
    """The reverse of `single_cases`: groups where a chart occurs more than once."""
    by_chart = {}
    for case in cases:
        chart = json.dumps(case["request"].get("list")) if "kind" in case["request"] else None
        by_chart.setdefault(chart, []).append(case)
    if list(by_chart) == [None] or "null" in by_chart:
        return cases
    out = by_chart.pop(None, [])
    for chart, members in by_chart.items():
        alike = {}
        for case in members:
            request = {k: v for k, v in case["request"].items() if k != "list"}
            kind = request.pop("kind")
            rest = json.dumps([request, {k: v for k, v in case.items() if k != "request"}])
            alike.setdefault(rest, (request, [], case))[1].append(kind)
        inner = [
            {**case, "request": {**request, "kind": kinds if len(kinds) > 1 else kinds[0]}}
            for request, kinds, case in alike.values()
        ]
        out.append({"common": {"list": json.loads(chart)}, "cases": inner})
    return out


def text(cases):
    """One line for each case."""

    def compact(value):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    lines = []
    for case in cases:
        if "cases" in case:
            inner = ",\n".join("  " + compact(inner) for inner in case["cases"])
            lines.append(f'{{"common":{compact(case["common"])},"cases":[\n{inner}\n]}}')
        else:
            lines.append(compact(case))
    return "[\n" + ",\n".join(lines) + "\n]\n"


def main():
    peer = subprocess.Popen(
        [sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    root = pathlib.Path(__file__).resolve().parents[3]
    for path in sorted((root / "helm-rs/tests/chart_cases").glob("*.json")):
        cases = list(single_cases(json.loads(path.read_text())))
        changed = 0
        for case in cases:
            peer.stdin.write(json.dumps(case["request"]) + "\n")
            peer.stdin.flush()
            answer = json.loads(peer.stdout.readline())
            if case["request"]["op"] == "process" and answer.get("ok"):
                slim(answer["ok"])
            answer = plain_numbers(answer)
            changed += answer != plain_numbers(case["answer"])
            case["answer"] = answer
        print(f"{path.name}: {len(cases)} cases, {changed} changed")
        if sys.argv[2:] != ["check"]:
            path.write_text(text(grouped(cases)))


if __name__ == "__main__":
    main()
