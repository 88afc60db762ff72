"""A process that takes kazoo's locks as it is told on standard input.

See dialect_test.go for the commands. Arguments: the servers, and a name for
the process.
"""

import sys

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError


def main(hosts, name):
    client = KazooClient(hosts=hosts, timeout=10.0)
    client.start(timeout=30)
    kinds = {"lock": client.Lock, "read": client.ReadLock, "write": client.WriteLock}
    locks = {}

    def lock(kind, path):
        # One object is used again and again: it makes the path only once.
        if (kind, path) not in locks:
            locks[kind, path] = kinds[kind](path, name)
        return locks[kind, path]

    def inside(shared, guard):
        """Return whom it met who must not be there."""
        mine = guard + "/" + ("reader-" + name if shared else "writer")
        try:
            client.create(mine, ephemeral=True)
        except NodeExistsError:
            return mine
        there = client.get_children(guard)
        client.delete(mine)
        if ("writer" in there) if shared else len(there) > 1:
            return str(there)
        return None

    def run(words):
        if words[0] == "acquire":
            run.held = lock(words[1], words[2])
            run.held.acquire()
            return "held"
        if words[0] == "release":
            run.held.release()
            return "released"
        kind, path, rounds, guard = words[1:]
        for _ in range(int(rounds)):
            with lock(kind, path):
                seen = inside(kind == "read", guard)
            if seen:
                return "overlap " + seen
        return "done"

    print("ready", flush=True)
    for line in sys.stdin:
        try:
            answer = run(line.split())
        except Exception as err:
            answer = "error %r" % err
        print(answer, flush=True)
    client.stop()


main(*sys.argv[1:])
