"""Inputs of a chosen size that a parser with a loop too many would take long over: SHAPES[target][name](bytes)."""
import base64
import zlib


def many(unit, n, front=b"", end=b""):
    """unit as often as it fits; a %d in it is counted up."""
    out, size, i = [front], len(front) + len(end), 0
    while size < n:
        out.append(unit % i if b"%d" in unit else unit)
        size += len(out[-1])
        i += 1
    return b"".join(out) + end


def shape(unit, front=b"", end=b""):
    return lambda n: many(unit, n, front, end)


JSON = {
    "deep-arrays": shape(b"["),
    "deep-objects": shape(b'{"a":'),
    "many-items": shape(b"1,", b"[", b"1]"),
    "many-names": shape(b'"n%d":1,', b"{", b'"z":1}'),
    "one-name": shape(b'"n":1,', b"{", b'"n":1}'),
    "escapes": shape(b"\\u0041", b'["', b'"]'),
    "surrogates": shape(b"\\ud83d", b'["', b'"]'),
    "long-number": shape(b"9", b"[", b"]"),
    "bad-utf8": shape(b"\xc0\xff", b'["', b'"]'),
    "blanks": shape(b" \n", b"[", b"]"),
    "open-string": shape(b"a\\", b'["'),
}


def behind(front, shapes):
    return {name: (lambda n, f=f: front + f(n)) for name, f in shapes.items()}


def member(data):
    c = zlib.compressobj(6, zlib.DEFLATED, -15)
    return (b"\x1f\x8b\x08\x04\0\0\0\0\0\xff\x0c\0tg\x08\0spool 1\n" + c.compress(data) + c.flush()
            + zlib.crc32(data).to_bytes(4, "little") + len(data).to_bytes(4, "little"))


MESSAGE = b'{"update_id":%d,"message":{"chat":{"id":%d},"from":{"id":5}}},'
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
LINE = b'{"bot":"shop","bot_id":123456,"update_id":5,"received_at":"2026-11-30T12:00:00Z","state":"done","payload":'

SHAPES = {
    "archive": {
        "members": lambda n: many(member(b""), n),
        "torn": lambda n: member(b"") + many(b"\x1f\x8b\x08", n),
        "signs": lambda n: member(b"") + many(b"\x1f\x8b\x08\x04tg\x08\0spool 2\n", n),
        "zeros": lambda n: member(b"") + bytes(n),
        "expands": lambda n: member(bytes(16 * n)),
    },
    "backup": {**JSON, "files": shape(b'{"name":"db/%d.sst","bytes":1,"mtime_ns":1},',
                                      b'{"format":1,"number":1,"taken_at_ms":1,"version":"1","schema":1,"instance":"a",'
                                      b'"generation":1,"unfinished":0,"ended":0,"highest_seq":0,"files":[',
                                      b'{"name":"a","bytes":1,"mtime_ns":1}]}')},
    "browser": {"hops": shape(b"10.0.0.1, ", b"localhost\n\n\n"), "commas": shape(b",", b"localhost\n\n\n"),
                "host": shape(b"["), "origin": shape(b"http://", b"localhost\n")},
    "call": {**behind(b"application/json\n", JSON),
             "calls": shape(b'{"method":"sendMessage","chat_id":%d},', b"\n[", b'{"method":"a"}]'),
             "keys": shape(b'"k%d",', b'\n{"ok":true,"keys":[', b'"k"]}'),
             "form": shape(b"a%d=%%41&", b"application/x-www-form-urlencoded\n")},
    "config": {
        "bots": shape(b"  b%d:\n    token_env: T\n", b"bots:\n"),
        "flow": shape(b"[", b"bots: "),
        "items": shape(b"message, ", b"bots:\n  a:\n    token_env: T\n    allowed_updates: [", b"message]\n"),
        "aliases": shape(b"- &a%d [*a0]\n", b"- &a0 x\n"),
        "keys": shape(b"k%d: 1\n"),
        "comment": shape(b"# \n"),
        "words": shape(b"a\\ 'b' "),
        "quotes": shape(b"''"),
        "indent": shape(b"- "),
        "folded": shape(b"\n x", b"a: >"),
    },
    "dropin": {**behind(b"/bot1:T/getUpdates\napplication/json\n", JSON),
               "query": shape(b"a%d=%%41&", b"/bot1:T/getUpdates?"), "path": shape(b"%41/", b"/bot1:T/"),
               "dots": shape(b"../", b"/file/bot1:T/"),
               "kinds": shape(b'"k%d",', b'/\n\n[', b'"z"]'),
               "comments": shape(b"/**/", b"/\n\n{", b'"update_id":1}')},
    "filter": {**behind(b"b", JSON), "query": shape(b"a=%%41&", b"q"), "error": shape(b"%%41", b"qerror="),
               "time": shape(b"1", b"t"), "cursor": shape(b"1", b"c1.0."),
               "history": shape(b'{"at":1},', LINE + b'{},"history":[', b'{"at":1}]}'),
               "base64": lambda n: LINE + b'null,"payload_base64":"' + base64.b64encode(bytes(n)) + b'"}'},
    "http": {
        "chunks": shape(b"1\r\na\r\n", b"\x06" + POST + b"Transfer-Encoding: chunked\r\n\r\n"),
        "extension": shape(b";a=b", b"\x06" + POST + b"Transfer-Encoding: chunked\r\n\r\n1"),
        "headers": shape(b"H%d: v\r\n", b"\x06" + POST), "header": shape(b"a ", b"\x06" + POST + b"H: "),
        "target": shape(b"/a", b"\x06GET "), "empty-lines": shape(b"\r\n", b"\x06"),
        "interim": shape(b"HTTP/1.1 100 Continue\r\n\r\n", b"\x07"),
        "connection": shape(b"x%d,", b"\x06" + POST + b"Connection: "),
        "body": shape(b"a", b"\x06" + POST + b"Content-Length: 9999999\r\n\r\n"),
    },
    "json": JSON,
    "log": {
        "batches": shape(b"\1\x0c" + bytes(12)),
        "edits": shape(b"\x81\2\2\2"),
        "ones": shape(b"\0\xff" + b"\1" * 255),
        "zeros": shape(b"\x7f\xff"),
        "torn": shape(b"\2\1a\1\1b\0\1c"),
    },
    "metrics": {"quotes": shape(b'"', bytes(8)), "slashes": shape(b"\\\n", bytes(8))},
    "multipart": {
        "parts": shape(b"--X\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n", b"multipart/form-data; boundary=X\n"),
        "almost": shape(b"\r\n--Y", b"multipart/form-data; boundary=" + b"Y" * 69 + b"X\n--" + b"Y" * 69 + b"X\r\n\r\n"),
        "dashes": shape(b"-", b"multipart/form-data; boundary=" + b"-" * 70 + b"\n"),
        "line-ends": shape(b"\r\n", b"multipart/form-data; boundary=X\n--X\r\n"),
        "headers": shape(b"A%d: b\r\n", b"multipart/form-data; boundary=X\n--X\r\n"),
        "parameters": shape(b"; a%d=\"\\\"\"", b"multipart/form-data"),
    },
    "record": {"event": shape(b"\0", b"\0\1"), "state": shape(b"\1", b"\1"), "box": shape(b"\1", b"\3"),
               "ones": shape(b"\xff", b"\3\xff")},
    "socks5": {"replies": shape(b"\5\0", b"\0"), "name": shape(b"\5\0\0\3\xff", b"\2")},
    "update": {**JSON, "answer": shape(MESSAGE.replace(b"%d", b"7"), b'{"ok":true,"result":[', b"{}]}"),
               "cut-answer": shape(MESSAGE.replace(b"%d", b"7"), b'{"ok":true,"result":['),
               "empty-updates": shape(b"{},", b'{"ok":true,"result":[', b"{}]}"),
               "long-id": shape(b"9", b'{"update_id":', b"}"),
               "ids": shape(b'"update_id":', b"{"), "replies": shape(b'{"reply_to_message":', b'{"update_id":5,"message":')},
    "url": {"query": shape(b"a=1&"), "percent": shape(b"%41", b"http://a/?a="), "host": shape(b"a.", b"http://"),
            "user": shape(b"a:@", b"http://"), "colons": shape(b":", b"["), "path": shape(b"/..", b"http://a")},
    "worker": {**JSON, "lines": shape(b"a\n"), "line-ends": shape(b"\r\n"), "after": shape(b"retry-after: 1\n"),
               "calls": shape(b'{"method":"a"},', b'{"id":"a","ok":true,"calls":[', b"{}]}")},
}
