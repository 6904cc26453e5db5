"""What the tests of the HTTP client talk to: scripted servers, a name server, certificates, real proxies."""

import os
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time

from ports import free_port  # noqa: F401


def answer(body=b"", status="200 OK", headers=(), length=True):
    """A whole HTTP answer."""
    lines = ["HTTP/1.1 " + status, *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def reset(conn):
    """Closes so that the peer gets a reset."""
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


class Conn:
    """One accepted connection, for the scripts."""

    def __init__(self, sock, number):
        self.sock, self.number, self.left = sock, number, b""

    def request(self):
        """Reads one request; returns its bytes, or None at the end."""
        while b"\r\n\r\n" not in self.left:
            more = self.sock.recv(65536)
            if not more:
                return None
            self.left += more
        head, rest = self.left.split(b"\r\n\r\n", 1)
        length = 0
        for line in head.split(b"\r\n")[1:]:
            name, value = line.split(b":", 1)
            if name.lower() == b"content-length":
                length = int(value)
        while len(rest) < length:
            more = self.sock.recv(65536)
            if not more:
                return None
            rest += more
        self.left = rest[length:]
        return head + b"\r\n\r\n" + rest[:length]

    def send(self, data):
        self.sock.sendall(data)

    def reset(self):
        reset(self.sock)


class Server:
    """Runs `script(conn)` for each connection, in a thread. `requests` collects what conn.request() gave."""

    def __init__(self, script, family=socket.AF_INET, address="127.0.0.1", port=0, tls=None, path=None):
        self.requests, self.connections, self.tls = [], 0, tls
        self.script, self.closing = script, False
        self.sock = socket.socket(socket.AF_UNIX if path else family)
        if not path:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind(path or (address, port))
        self.sock.listen(16)
        self.port = 0 if path else self.sock.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.sock.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock, self.connections), daemon=True).start()

    def _serve(self, sock, number):
        try:
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            conn = Conn(sock, number)
            read = conn.request

            def request():
                r = read()
                if r is not None:
                    self.requests.append(r)
                return r

            conn.request = request
            self.script(conn)
        except OSError:
            pass
        finally:
            sock.close()

    def close(self):
        self.sock.close()


def always(data):
    """A script that answers each request with the same bytes."""

    def script(conn):
        while conn.request() is not None:
            conn.send(data)

    return script


class NameServer:
    """Answers over UDP. names: {name: {"A": [...], "AAAA": [...]}}; a value may be "silent", "servfail", or a pair of
    seconds to wait and addresses."""

    TYPES = {1: "A", 28: "AAAA"}

    def __init__(self, names):
        self.names, self.asked = names, []
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.sock.bind(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.sock.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                q, peer = self.sock.recvfrom(2048)
            except OSError:
                return
            threading.Thread(target=self._answer, args=(q, peer), daemon=True).start()

    def _answer(self, q, peer):
        at, labels = 12, []
        while q[at]:
            labels.append(q[at + 1 : at + 1 + q[at]].decode())
            at += 1 + q[at]
        kind = self.TYPES.get(struct.unpack(">H", q[at + 1 : at + 3])[0])
        name = ".".join(labels).lower()
        self.asked.append((name, kind))
        found, code, answers = self.names.get(name), 0, []
        if found is None:
            code = 3
        else:
            answers = found.get(kind, [])
        if isinstance(answers, tuple):
            time.sleep(answers[0])
            answers = answers[1]
        if answers == "silent":
            return
        if answers == "servfail":
            code, answers = 2, []
        out = q[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(answers), 0, 0) + q[12 : at + 5]
        for a in answers:
            raw = socket.inet_pton(socket.AF_INET if kind == "A" else socket.AF_INET6, a)
            out += b"\xc0\x0c" + q[at + 1 : at + 3] + struct.pack(">HIH", 1, 60, len(raw)) + raw
        try:
            self.sock.sendto(out, peer)
        except OSError:
            pass  # the test is over

    def close(self):
        self.sock.close()


class DeadPort:
    """A listener that lets every connection attempt hang, as its queue is full."""

    def __init__(self, family, address, port):
        self.sock = socket.socket(family)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.sock.bind((address, port))
        self.sock.listen(0)
        self.fillers = []
        for _ in range(6):
            s = socket.socket(family)
            s.setblocking(False)
            s.connect_ex((address, port))
            self.fillers.append(s)
        time.sleep(0.1)

    def close(self):
        for s in [self.sock, *self.fillers]:
            s.close()


class Certificates:
    """A signer of our own and what it signed, made by the openssl command."""

    def __init__(self, directory):
        self.dir = directory
        self._openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "key.pem")
        self._openssl("req", "-x509", "-new", "-key", "key.pem", "-subj", "/CN=test signer", "-days", "2",
                      "-addext", "keyUsage=critical,keyCertSign", "-out", "ca.pem")
        self._sign("good", "DNS:good.test,IP:127.0.0.1")
        self._sign("other", "DNS:other.test,DNS:*.another.test")
        self._sign("expired", "DNS:good.test", expired=True)
        self._openssl("req", "-x509", "-new", "-key", "key.pem", "-subj", "/CN=good.test", "-days", "2",
                      "-addext", "subjectAltName=DNS:good.test", "-out", "self.pem")
        self.ca = str(directory / "ca.pem")

    def _openssl(self, *args):
        subprocess.run(["openssl", *args], cwd=self.dir, check=True, capture_output=True)

    def _sign(self, name, names, expired=False):
        (self.dir / "ext").write_text(f"subjectAltName={names}\nauthorityKeyIdentifier=keyid\n")
        self._openssl("req", "-new", "-key", "key.pem", "-subj", f"/CN={name}", "-out", "csr.pem")
        if not expired:
            self._openssl("x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "key.pem", "-CAcreateserial",
                          "-days", "2", "-extfile", "ext", "-out", f"{name}.pem")
            return
        # x509 knows no dates before OpenSSL 3.4, and no negative days after it
        (self.dir / "ca.db").write_text("")
        (self.dir / "ca.cnf").write_text("[ca]\ndefault_ca=c\n[c]\ndatabase=ca.db\nrand_serial=yes\npolicy=p\n"
                                         "default_md=sha256\nunique_subject=no\n[p]\ncommonName=supplied\n")
        self._openssl("ca", "-batch", "-config", "ca.cnf", "-cert", "ca.pem", "-keyfile", "key.pem", "-in", "csr.pem",
                      "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-notext", "-outdir", ".",
                      "-extfile", "ext", "-out", f"{name}.pem")

    def server(self, name, newest=None):
        """An SSL context that shows the certificate `name`; `newest` is a protocol too old for us."""
        c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        c.load_cert_chain(self.dir / f"{name}.pem", self.dir / "key.pem")
        if newest:
            c.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
            c.maximum_version = newest
            c.set_ciphers("ALL:@SECLEVEL=0")
        return c


def find_program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin:/usr/bin")


def wait_for_port(port, process, seconds=10):
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError("the proxy did not start")
