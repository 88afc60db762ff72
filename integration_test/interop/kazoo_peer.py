"""A process that acquires and releases kazoo's locks and elections.

It reads commands from standard input; peer_test.go lists them. Arguments: the
servers, and a name for the process.
"""

import sys
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError


class Office:
    """kazoo's Election, which leads in a thread of its own until release."""

    def __init__(self, election):
        self.election = election

    def acquire(self):
        self.leads, self.done = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.election.run, args=(self.lead,), daemon=True)
        self.thread.start()
        self.leads.wait()

    def lead(self):
        self.leads.set()
        self.done.wait()

    def release(self):
        self.done.set()
        self.thread.join()

    def __enter__(self):
        self.acquire()

    def __exit__(self, *_):
        self.release()


def main(hosts, name):
    client = KazooClient(hosts=hosts, timeout=10.0)
    client.start(timeout=30)
    kinds = {"lock": client.Lock, "read": client.ReadLock, "write": client.WriteLock}
    kinds["election"] = lambda path, name: Office(client.Election(path, name))
    locks = {}

    def lock(kind, path):
        # The object is reused, because a lock object creates its path only once.
        if (kind, path) not in locks:
            locks[kind, path] = kinds[kind](path, name)
        return locks[kind, path]

    def inside(shared, guard):
        """Return the nodes of contenders that must not hold the lock now, or None."""
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

    def cycle(path, threads, seconds):
        """Acquire and release for some seconds in several threads; return the figures."""
        cycles, errors, longest = [0] * threads, [0] * threads, [0.0] * threads
        end = time.monotonic() + seconds

        def work(i):
            mine = client.Lock(path, name)
            while time.monotonic() < end:
                began = time.monotonic()
                try:
                    mine.acquire()
                    mine.release()
                    cycles[i] += 1
                except Exception:
                    errors[i] += 1
                    mine = client.Lock(path, name)
                longest[i] = max(longest[i], time.monotonic() - began)

        # A thread that hangs must not prevent the report of the others' figures.
        workers = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(threads)]
        for w in workers:
            w.start()
        for w in workers:
            w.join(max(0, end + 15 - time.monotonic()))
        hung = sum(w.is_alive() for w in workers)
        return "cycles %d errors %d longest %d hung %d" % (sum(cycles), sum(errors), max(longest) * 1000, hung)

    def run(words):
        if words[0] == "acquire":
            run.held = lock(words[1], words[2])
            run.held.acquire()
            return "held"
        if words[0] == "try":
            run.held = lock(words[1], words[2])
            return "held" if run.held.acquire(blocking=False) else "refused"
        if words[0] == "release":
            run.held.release()
            return "released"
        if words[0] == "cycle":
            return cycle(words[1], int(words[2]), float(words[3]))
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
