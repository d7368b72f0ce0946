// Both ends of a connection over loopback, in one process.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what); _exit(99); } } while (0)

struct pair { int client, server; };

static inline struct pair connected(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (void *)&at, len) == 0 && listen(listener, 5) == 0);
    CHECK(getsockname(listener, (void *)&at, &len) == 0);
    struct pair pair = {.client = socket(AF_INET, SOCK_STREAM, 0)};
    CHECK(connect(pair.client, (void *)&at, len) == 0);
    CHECK((pair.server = accept(listener, 0, 0)) >= 0);
    close(listener);
    return pair;
}

static inline void take(int fd, int bytes) {
    char buffer[1000];
    while (bytes > 0) {
        ssize_t got = read(fd, buffer, bytes);
        CHECK(got > 0);
        bytes -= got;
    }
}
