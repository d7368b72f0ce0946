# Messages of two pieces, each written by other lines; the test looks for the marked ones. `python3 lines.py WHAT`.
import asyncio
import os
import socket
import sys
import threading


def first(connection):
    connection.send(b"first ")  # plain: first


def second(connection):
    for piece in [b"sec", b"ond"]:
        connection.sendall(  # plain: second
            piece
        )


def answered(connection):
    first(connection)  # plain: by
    second(connection)
    assert connection.recv(100) == b"ok"


def pieces(connection):
    connection.send(b"gene")  # generator: first
    yield 1
    connection.send(b"rator")  # generator: second


class Client(threading.Thread):
    def __init__(self, connection):
        super().__init__()
        self.connection = connection

    def run(self):
        answered(self.connection)  # thread: by


def generator(connection):
    for _ in pieces(connection):  # generator: by
        pass
    assert connection.recv(100) == b"ok"


def thread(connection):
    client = Client(connection)
    client.start()
    client.join()


def forked(connection):
    child = os.fork()
    if child == 0:
        answered(connection)  # forked: by
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def late(connection):
    answered(connection)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # late: nodelay


async def coroutine(connection):
    reader, writer = await asyncio.open_connection(sock=connection)  # coroutine: open
    writer.write(b"asyn")  # coroutine: first
    await asyncio.sleep(0)
    writer.write(b"cio")  # coroutine: second
    assert await reader.read(100) == b"ok"
    writer.close()


def serve(listening):
    accepted, _ = listening.accept()
    got = b""
    while not got.endswith((b"second", b"generator", b"asyncio")):
        got += accepted.recv(100)
    accepted.send(b"ok")
    accepted.recv(100)


listening = socket.create_server(("127.0.0.1", 0))
server = threading.Thread(target=serve, args=(listening,))
server.start()
connection = socket.create_connection(listening.getsockname())
what = globals()[sys.argv[1]]
if asyncio.iscoroutinefunction(what):
    asyncio.run(what(connection))
else:
    what(connection)
connection.close()
server.join()
print("its own output")
