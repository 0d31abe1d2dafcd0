"""A model server that does as it is told by the words in its first argument; it takes the flags of the real one.

serve: answers /health with 200. deaf: listens and never becomes ready. broken: ends at once with a line that says why.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers every GET alike."""

    def do_GET(self) -> None:
        self.send_response(200 if sys.argv[1] == "serve" else 503)
        self.end_headers()

    def log_message(self, *message: object) -> None:
        return


if sys.argv[1] == "broken":
    sys.exit("the weights are nowhere to be seen")
port = int(sys.argv[sys.argv.index("--port") + 1])
with HTTPServer(("127.0.0.1", port), Handler) as server:
    server.serve_forever()
