// Plain java.net sockets: answers each request of 10 bytes in two pieces. Prints its port.
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;

public class Split {
    public static void main(String[] args) throws IOException {
        var listener = new ServerSocket(0, 5, InetAddress.getLoopbackAddress());
        System.out.println("port " + listener.getLocalPort());
        try (var socket = listener.accept()) {
            socket.setTcpNoDelay(args.length > 0);
            var in = socket.getInputStream();
            var out = socket.getOutputStream();
            while (in.readNBytes(10).length == 10) {
                out.write(new byte[20]);
                out.write(new byte[30]);
            }
        }
    }
}
