#!/usr/bin/env python3
"""Asks the peer for the answers of all cases under helm-rs/tests/chart_cases again.

    refresh.py PEER        rewrite the files
    refresh.py PEER check  only say which answers have changed

Requests and `differs` marks stay. Helm walks subcharts in random order, so that a few answers
change from run to run in the order of their lines.
"""

import json
import pathlib
import subprocess
import sys

LEFT_OUT = ("raw", "files", "templates", "lock", "schema", "crds")


def slim(dump):
    """Leaves out of a chart what dependency processing does not touch."""
    for key in LEFT_OUT:
        dump.pop(key, None)
    for subchart in dump["deps"]:
        slim(subchart)


def main():
    peer = subprocess.Popen(
        [sys.argv[1]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    root = pathlib.Path(__file__).resolve().parents[3]
    for path in sorted((root / "helm-rs/tests/chart_cases").glob("*.json")):
        cases = json.loads(path.read_text())
        changed = 0
        for case in cases:
            peer.stdin.write(json.dumps(case["request"]) + "\n")
            peer.stdin.flush()
            answer = json.loads(peer.stdout.readline())
            if case["request"]["op"] == "process" and answer.get("ok"):
                slim(answer["ok"])
            changed += answer != case["answer"]
            case["answer"] = answer
        print(f"{path.name}: {len(cases)} cases, {changed} changed")
        if sys.argv[2:] != ["check"]:
            path.write_text(json.dumps(cases, ensure_ascii=False, separators=(",", ":")))


main()
