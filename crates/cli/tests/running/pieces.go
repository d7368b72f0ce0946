// Writes its answers in three pieces, with Nagle's algorithm on.
package main

import "net"

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func answer(listener net.Listener) {
	conn, err := listener.Accept()
	check(err)
	check(conn.(*net.TCPConn).SetNoDelay(false))
	buffer := make([]byte, 100)
	for {
		if _, err := conn.Read(buffer); err != nil {
			return
		}
		flush(conn)
	}
}

func flush(conn net.Conn) {
	for i := 0; i < 3; i++ {
		_, err := conn.Write([]byte("0123456789"))
		check(err)
	}
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go answer(listener)
	conn, err := net.Dial("tcp", listener.Addr().String())
	check(err)
	buffer := make([]byte, 100)
	for i := 0; i < 5; i++ {
		_, err := conn.Write([]byte("request"))
		check(err)
		for got := 0; got < 30; {
			count, err := conn.Read(buffer)
			check(err)
			got += count
		}
	}
	check(conn.Close())
}
