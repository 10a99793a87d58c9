"""Headers read by ranges: from a local HTTP server, at a cost of less than the header and 1 MiB."""

import http.client
import http.server
import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from octavo.core.errors import UnreadableFile
from octavo.core.gguf import RangedSource, read_header
from octavo.core.gguf.remote import FIRST_BLOCK, LARGEST_BLOCK
from tests.fixtures.gguf_builder import F16, TensorEntry, array, big_vocabulary, pair, strings, tiny

MIB = 1 << 20


class RangeServer(http.server.ThreadingHTTPServer):
    """Serves ranges of one file and counts the bytes of all bodies."""

    daemon_threads = True
    path: Path
    sent = 0
    requests = 0


class RangeHandler(http.server.BaseHTTPRequestHandler):
    """Answers ``Range: bytes=a-b`` with 206."""

    protocol_version = "HTTP/1.1"
    server: RangeServer

    def do_GET(self) -> None:
        first, last = map(int, self.headers["Range"].removeprefix("bytes=").split("-"))
        with open(self.server.path, "rb") as file:
            file.seek(first)
            body = file.read(last - first + 1)
        self.server.requests += 1
        self.server.sent += len(body)
        self.send_response(206)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay silent."""


@contextmanager
def served(path: Path) -> Iterator[RangeServer]:
    with RangeServer(("127.0.0.1", 0), RangeHandler) as server:
        server.path = path
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def remote(server: RangeServer) -> Iterator[RangedSource]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port)

    def fetch(start: int, stop: int) -> bytes:
        connection.request("GET", "/model.gguf", headers={"Range": f"bytes={start}-{stop - 1}"})
        return connection.getresponse().read()

    yield RangedSource(fetch, server.path.stat().st_size)
    connection.close()


@pytest.mark.parametrize("name", ["smollm2", "gemma"])
def test_a_remote_header_costs_less_than_itself_and_a_megabyte(name: str, request: pytest.FixtureRequest):
    path: Path = request.getfixturevalue(name)
    with served(path) as server, remote(server) as source:
        header = read_header(source, path.name)
    local = read_header(path)
    assert (header.metadata, header.tensors) == (local.metadata, local.tensors)
    assert server.sent < header.data_offset + MIB
    assert (source.fetched_bytes, source.requests) == (server.sent, server.requests)
    print(f"{name}: header {header.data_offset:,} B, sent {server.sent:,} B in {server.requests} requests")


def in_memory(data: bytes) -> RangedSource:
    return RangedSource(lambda start, stop: data[start:stop], len(data))


def test_a_small_header_costs_one_small_request():
    model = tiny()
    model.tensors = [TensorEntry("t", [1 << 20], F16)]
    source = in_memory(model.build())
    read_header(source)
    assert (source.requests, source.fetched_bytes) == (1, FIRST_BLOCK)


def test_blocks_grow_and_none_is_asked_for_twice():
    asked: list[tuple[int, int]] = []
    data = big_vocabulary(262_144).build()

    def fetch(start: int, stop: int) -> bytes:
        asked.append((start, stop))
        return data[start:stop]

    read_header(RangedSource(fetch, len(data)))
    sizes = [stop - start for start, stop in asked]
    assert sizes[:-1] == sorted(sizes[:-1]) and max(sizes) == LARGEST_BLOCK
    # the scores after the tokens are passed over
    assert all(start >= stop for (_, stop), (start, _) in itertools.pairwise(asked))


def test_a_large_string_is_passed_over_unread():
    data = tiny("llama", pair("tokenizer.huggingface.json", "x" * (20 * MIB))).build()
    source = in_memory(data)
    header = read_header(source)
    assert source.fetched_bytes < 2 * MIB and header.data_offset > 20 * MIB
    assert header.tensors == read_header(data).tensors


def test_short_arrays_across_blocks_are_read_right():
    words = [f"{number}" * 90 for number in range(1000)]
    data = tiny("llama", strings("a", words), pair("n", array(4, range(900)), 9), strings("b", words)).build()  # type: ignore[arg-type]
    assert read_header(in_memory(data)).metadata == read_header(data).metadata


def test_a_server_that_sends_less_is_named():
    source = RangedSource(lambda start, stop: b"GGUF", 1000)
    with pytest.raises(UnreadableFile, match="4 came"):
        read_header(source, "remote.gguf")
