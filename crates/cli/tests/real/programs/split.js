// Answers each request of 10 bytes in two pieces. Prints its port.
const server = require("net").createServer((socket) => {
    socket.setNoDelay(process.argv.length > 2);
    socket.on("data", () => {
        socket.write(Buffer.alloc(20));
        socket.write(Buffer.alloc(30));
    });
    socket.on("end", () => server.close());
});
server.listen(0, "127.0.0.1", () => console.log("port", server.address().port));
