"""What a rude client does to an HTTP server: for tests/net against the server alone, for tests/e2e against the daemon's
listeners."""
import socket
import time


def shapes(get, post):
    """Requests that must be refused, by name. Of the two heads each lacks the empty line, and post the length too."""
    return {
        "two lengths": post + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "equal lengths": post + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        "list of lengths": post + b"Content-Length: 3, 3\r\n\r\nabc",
        "signed length": post + b"Content-Length: +3\r\n\r\nabc",
        "length and coding": post + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "coding and length": post + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n",
        "two codings": post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "unknown coding": post + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
        "hidden coding": post + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "old coding": post.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "bare LF": get.replace(b"\r\n", b"\n") + b"\n",
        "bare LF in a field": get + b"X: 1\nY: 2\r\n\r\n",
        "bare CR": get + b"X: 1\rY: 2\r\n\r\n",
        "folded": get + b"X: 1\r\n Content-Length: 5\r\n\r\n",
        "zero byte": get + b"X: \x00\r\n\r\n",
        "two hosts": get + b"Host: b\r\n\r\n",
        "huge head": get + b"X: " + b"a" * 20000 + b"\r\n\r\n",
        "many fields": get + b"X: 1\r\n" * 200 + b"\r\n",
        "chunk size": post + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
        "negative chunk": post + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        "long chunk": post + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        "chunk with LF": post + b"Transfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
        "endless extension": post + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 40000,
        "endless trailers": post + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: 1\r\n" * 8000,
    }


def read_to_end(s):
    got = b""
    try:
        while True:
            more = s.recv(65536)
            if not more:
                return got
            got += more
    except ConnectionResetError:
        return got + b"(reset)"


def flood(port, n, send=b"", shut=False):
    """Opens n connections that say so much and then nothing; with shut they end their side."""
    held = []
    for _ in range(n):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", port))
        held.append(s)
        if len(held) % 50 == 0:
            time.sleep(0.05)
        if len(held) > 20:
            poke(held[-20], send)
    for s in held[-20:]:
        poke(s, send)
    for s in held if shut else ():
        try:
            s.shutdown(socket.SHUT_WR)
        except OSError:
            pass
    return held


def poke(s, data):
    try:
        if data:
            s.send(data)
    except OSError:
        pass
