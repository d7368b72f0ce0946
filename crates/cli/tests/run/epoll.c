// Non-blocking, both in connecting and in reading, with what the calls leave in errno.
#include "pair.h"

int main(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (void *)&at, len) == 0 && listen(listener, 5) == 0);
    CHECK(getsockname(listener, (void *)&at, &len) == 0);
    int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    CHECK(connect(client, (void *)&at, len) == -1 && errno == EINPROGRESS);
    int server = accept4(listener, 0, 0, SOCK_NONBLOCK);
    char buffer[10];
    errno = 0;
    CHECK(recv(server, buffer, 10, 0) == -1 && errno == EAGAIN);
    int events = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(events, EPOLL_CTL_ADD, server, &event);
    for (int i = 0; i < 10; i++) {
        CHECK(send(client, "k", 1, 0) == 1);
        CHECK(epoll_wait(events, &event, 1, 1000) == 1);
        CHECK(recv(server, buffer, 10, 0) == 1);
        errno = 4321;
        CHECK(recv(events, buffer, 10, 0) == -1 && errno == ENOTSOCK);
        errno = 4321;
        CHECK(send(server, "k", 1, 0) == 1 && errno == 4321);
        struct pollfd readable = {.fd = client, .events = POLLIN};
        CHECK(poll(&readable, 1, 1000) == 1 && read(client, buffer, 10) == 1);
    }
    errno = 0;
    CHECK(write(client, (void *)1, 10) == -1 && errno == EFAULT);
    CHECK(writev(client, (void *)1, 2) == -1 && errno == EFAULT);
    CHECK(sendmsg(client, (void *)1, 0) == -1 && errno == EFAULT);
    CHECK(setsockopt(client, IPPROTO_TCP, TCP_NODELAY, (void *)1, 4) == -1 && errno == EFAULT);
    CHECK(write(-1, "k", 1) == -1 && errno == EBADF);
    return 0;
}
