"""A forward proxy for tests: it passes on what is asked over HTTP, and counts it."""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_DROPPED = {"proxy-connection", "proxy-authorization", "connection", "keep-alive", "transfer-encoding"}


class SmallProxy(ThreadingHTTPServer):
    """The proxy; ``asked`` are the URLs that went through, ``said`` the names and passwords it was told."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[str] = []
        self.said: list[str | None] = []

    @property
    def address(self) -> str:
        """Where it is, as HTTP_PROXY names it."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallProxy

    def do_GET(self) -> None:
        """Pass a request on, and its answer back."""
        self.server.asked.append(self.path)
        self.server.said.append(self.headers.get("Proxy-Authorization"))
        url = urlsplit(self.path)
        onward = http.client.HTTPConnection(url.hostname or "", url.port or 80, timeout=10)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _DROPPED}
        onward.request("GET", f"{url.path}?{url.query}", headers=headers)
        answer = onward.getresponse()
        body = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in _DROPPED | {"content-length"}:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        onward.close()

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@contextmanager
def small_proxy() -> Iterator[SmallProxy]:
    """Run a proxy until the block ends."""
    with SmallProxy() as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.02,))
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()
