// Answers each request of 10 bytes in two pieces. Prints its port. Go's connections begin with TCP_NODELAY on.
package main

import (
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("port", listener.Addr().(*net.TCPAddr).Port)
	conn, err := listener.Accept()
	if err != nil {
		panic(err)
	}
	conn.(*net.TCPConn).SetNoDelay(len(os.Args) > 1)
	request := make([]byte, 10)
	for {
		if _, err := io.ReadFull(conn, request); err != nil {
			return
		}
		conn.Write(make([]byte, 20))
		conn.Write(make([]byte, 30))
	}
}
