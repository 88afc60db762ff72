"""The worker of locktest for kazoo, a ZooKeeper client for Python.

The documentation of kazoo.recipe.lock recommends, under "Error Handling", a listener that reacts to SUSPENDED
and LOST. The page "Basic Usage", under "Understanding Kazoo States", has a client that is SUSPENDED pause what
needs a lock, and go on if CONNECTED follows. The worker is stricter: a hold is lost as soon as the state is one
of the two, and a lock that was granted while the state changed is given back. kazoo documents no fencing token.
A Lock object serves one acquisition: threads that share one poll for it.
"""
import faulthandler
import json
import logging
import os
import queue
import signal
import sys
import threading

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException

logging.basicConfig(stream=sys.stderr, level=logging.WARNING)
faulthandler.register(signal.SIGQUIT, all_threads=True)
writing = threading.Lock()
guard = threading.Lock()
inboxes = {}  # of the acquisitions that are not over, by id; guarded by guard
held = {}  # the holds that were granted, by id, with their names; guarded by guard
losses = 0  # how often the session ended; guarded by guard


def answer(op, number=0, name="", **more):
    with writing:
        sys.stdout.write(json.dumps(dict(op=op, id=number, name=name, **more)) + "\n")
        sys.stdout.flush()


def listen(state):
    """A listener must not block, says the page: it notes the loss and reports it."""
    global losses
    if state == KazooState.CONNECTED:
        return
    with guard:
        losses += state == KazooState.LOST
        lost = list(held.items())
        held.clear()
    for number, name in lost:
        answer("lost", number, name)


def acquire(client, number, name, inbox):
    """The life of an acquisition."""
    lock = client.Lock("/locktest-kazoo/" + name)
    try:
        while True:
            with guard:
                before = losses
            if not lock.acquire():
                raise KazooException("not acquired")
            with guard:
                if losses == before and client.state == KazooState.CONNECTED:
                    held[number] = name
                    answer("granted", number, name)  # before the listener can report the loss of the hold
                    break
            release(lock)  # the state is SUSPENDED or was LOST: it is not sure that the lock is held
            lock = client.Lock("/locktest-kazoo/" + name)
    except Exception as e:
        with guard:
            del inboxes[number]
        release(lock)
        answer("failed", number, name, reason=repr(e))
        return
    while True:
        op = inbox.get()
        with guard:
            holds = number in held and client.state == KazooState.CONNECTED
        if op == "check":
            answer("held" if holds else "lost", number, name)
            continue
        with guard:
            held.pop(number, None)
            del inboxes[number]
        reason = release(lock)
        answer("failed" if reason else "released", number, name, reason=reason)
        return


def release(lock):
    """Gives a lock back, and returns why that failed."""
    try:
        lock.release()
        return ""
    except Exception as e:
        return repr(e)


def main():
    ttl = seconds(os.environ["LOCKTEST_TTL"])
    client = KazooClient(hosts=os.environ["LOCKTEST_SERVERS"], timeout=ttl)
    client.add_listener(listen)
    client.start(timeout=50)
    answer("ready")
    for line in sys.stdin:
        request = json.loads(line)
        number = request["id"]
        if request["op"] == "acquire":
            with guard:
                inbox = inboxes[number] = queue.Queue()
            arguments = (client, number, request["name"], inbox)
            threading.Thread(target=acquire, args=arguments, daemon=True).start()
        else:
            with guard:
                inbox = inboxes[number]
            inbox.put(request["op"])
    os._exit(0)  # the end of the input ends the worker at once


def seconds(text):
    """The seconds of a duration as Go writes it, such as 1m4.5s or 400ms."""
    units = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}
    total, number, unit = 0, "", ""
    for c in text + "0":
        if c in "0123456789.":
            if unit:
                total, number, unit = total + float(number) * units[unit], "", ""
            number += c
        else:
            unit += c
    return total


main()
