# CPython's own server with HTTP/1.1 keep-alive: headers and body go out by two calls (cpython issue 108736).
import http.client
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "6")
        self.end_headers()
        self.wfile.write(b"hello\n")

    def log_message(self, *unused):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
client = http.client.HTTPConnection("127.0.0.1", server.server_port)
for _ in range(10):
    client.request("GET", "/")
    client.getresponse().read()
client.close()
server.shutdown()
