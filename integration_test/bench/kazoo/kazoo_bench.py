"""A process that locks with kazoo as the benchmark's runner commands.

The Go package worker documents the commands and the figures. All threads share
one client, and so one session, as kazoo's users do. The argument is the servers.
"""

import sys
import threading
import time
import uuid

from kazoo.client import KazooClient

ROOT = "/bench/kazoo/"
KEEP = 1 << 14  # the cycles of a thread whose times are kept
BEFORE, AFTER = 4, 10  # see before and after in the Go package worker


class Person(threading.Thread):
    """A thread that does cycles, and their times in nanoseconds."""

    def __init__(self, client, words, index, warm, start):
        super().__init__(daemon=True)
        self.client, self.index, self.warm, self.start_line = client, index, warm, start
        self.kind, self.names, self.prefix = words[1], words[3], words[4]
        self.length = int(words[5]) * 1_000_000 if words[0] == "cycles" else 0
        self.begin = self.end = time.monotonic_ns()  # a cycle counts if it ends between these
        self.acquires, self.releases = [], []
        self.cycles = self.total = 0
        self.lock = self.failure = None

    def take(self):
        """Return the lock of the next cycle.

        A lock object creates the znode of its name once. So the object of a known
        name is used again.
        """
        if self.names == "fresh":
            return self.client.Lock(f"{ROOT}{self.prefix}-{self.index}-{uuid.uuid4().hex}")
        if self.lock is None:
            name = f"{self.prefix}-{self.index}" if self.names == "own" else self.prefix
            self.lock = self.client.Lock(ROOT + name)
        return self.lock

    def cycle(self):
        if self.kind != "mutex":
            raise ValueError("this library does not support it: " + self.kind)
        lock = self.take()
        t0 = time.monotonic_ns()
        lock.acquire()
        t1 = time.monotonic_ns()
        lock.release()
        t2 = time.monotonic_ns()
        self.total += 1
        if not self.begin <= t2 < self.end:
            return
        if len(self.acquires) < KEEP:
            self.acquires.append(t1 - t0)
            self.releases.append(t2 - t1)
        else:
            self.acquires[self.cycles % KEEP] = t1 - t0
            self.releases[self.cycles % KEEP] = t2 - t1
        self.cycles += 1

    def run(self):
        try:
            try:
                if self.length:
                    self.cycle()
                    self.total = 0
            finally:
                self.warm.release()
            self.start_line.wait()
            if not self.length:
                self.end = time.monotonic_ns() + 3600 * 10**9
                self.cycle()
                return
            self.begin = time.monotonic_ns() + self.length // BEFORE
            self.end = self.begin + self.length
            last = self.end + self.length // AFTER
            while time.monotonic_ns() < last:
                self.cycle()
        except Exception as e:  # the runner gets it
            self.failure = e


def quantile(times, q):
    """Return a quantile of sorted times, in microseconds."""
    return times[min(len(times) - 1, int(q * len(times)))] / 1e3 if times else 0


def run(client, words):
    if words[0] == "versions":
        return "done kazoo"
    if words[0] == "hold":
        client.Lock(ROOT + words[1]).acquire()
        return "done"
    if words[0] not in ("cycles", "once"):
        return "error unknown command " + words[0]
    warm, start = threading.Semaphore(0), threading.Event()
    people = [Person(client, words, i, warm, start) for i in range(int(words[2]))]
    for p in people:
        p.start()
    for _ in people:
        warm.acquire()
    say("ready")
    sys.stdin.readline()  # go
    begin = time.monotonic_ns()
    start.set()
    for p in people:
        p.join()
    seconds = (people[0].length or time.monotonic_ns() - begin) / 1e9
    for p in people:
        if p.failure is not None:
            raise p.failure
    acquires = sorted(t for p in people for t in p.acquires)
    releases = sorted(t for p in people for t in p.releases)
    figures = {
        "acquire50": quantile(acquires, 0.5),
        "acquire99": quantile(acquires, 0.99),
        "acquireMax": quantile(acquires, 1),
        "cycles": sum(p.cycles for p in people),
        "release50": quantile(releases, 0.5),
        "seconds": seconds,
        "total": sum(p.total for p in people),
    }
    return "done " + " ".join(f"{key}={value:.6g}" for key, value in figures.items())


def say(line):
    print(line, flush=True)


def main(hosts):
    client = KazooClient(hosts=hosts)
    client.start(timeout=30)
    for line in iter(sys.stdin.readline, ""):
        try:
            say(run(client, line.split()))
        except Exception as e:
            say("error " + (repr(e).replace("\n", " ")))
    client.stop()


main(sys.argv[1])
