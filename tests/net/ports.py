"""Ports for servers that are told where to listen, and may be ended and started again there."""
import random
import socket

FIRST, END = 10000, 20000  # the kernel gives those from 32768 on to whoever asks for any, also to clients
taken = []  # held as long as this process lives, so that no other test gets the same


def free_port():
    """A port that nobody listens on now, and that no other test is given."""
    while True:
        port = random.randrange(FIRST, END)
        hold = socket.socket(socket.AF_UNIX)
        try:
            hold.bind(f"\0tgspool-test-port-{port}")
            with socket.socket() as s:
                s.bind(("127.0.0.1", port))
        except OSError:
            hold.close()
            continue
        taken.append(hold)
        return port
