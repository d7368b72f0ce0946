// Corks in two ways, and says what became of it.
#include "pair.h"

// Whether what was written reaches the other side before TCP gives up holding it, after 200 ms.
static const char *fate(struct pair pair, int bytes) {
    struct pollfd readable = {.fd = pair.server, .events = POLLIN};
    int came = poll(&readable, 1, 100);
    take(pair.server, bytes);
    return came ? "sent" : "held";
}

static int option(int fd, long (*ask)(long, ...)) {
    int value = -1;
    socklen_t len = sizeof value;
    if (ask)
        CHECK(ask(SYS_getsockopt, fd, IPPROTO_TCP, TCP_CORK, &value, &len) == 0);
    else
        CHECK(getsockopt(fd, IPPROTO_TCP, TCP_CORK, &value, &len) == 0 && len == sizeof value);
    return value;
}

static void datagrams(void) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int to = socket(AF_INET, SOCK_DGRAM, 0), from = socket(AF_INET, SOCK_DGRAM, 0);
    char buffer[10];
    CHECK(bind(to, (void *)&at, len) == 0 && getsockname(to, (void *)&at, &len) == 0);
    CHECK(connect(from, (void *)&at, len) == 0);
    CHECK(send(from, "abc", 3, MSG_MORE) == 3 && send(from, "def", 3, 0) == 3);
    CHECK(recv(to, buffer, sizeof buffer, 0) == 6);
}

int main(void) {
    struct pair pair = connected();
    int on = 1, off = 0;
    CHECK(option(pair.client, 0) == 0);
    CHECK(setsockopt(pair.client, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == 0);
    CHECK(option(pair.client, 0) == 1);
    int copy = dup(pair.client);
    CHECK(option(copy, 0) == 1);
    CHECK(write(pair.client, "0123456789", 10) == 10);
    printf("cork %s, in the kernel %d\n", fate(pair, 10), option(pair.client, syscall));
    CHECK(setsockopt(pair.client, IPPROTO_TCP, TCP_CORK, &off, sizeof off) == 0);
    CHECK(option(pair.client, 0) == 0);
    CHECK(send(pair.client, "0123456789", 10, MSG_MORE) == 10);
    printf("more %s\n", fate(pair, 10));
    struct iovec part = {"0123456789", 10};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    CHECK(sendmsg(pair.client, &message, MSG_MORE) == 10);
    printf("message %s\n", fate(pair, 10));
    CHECK(setsockopt(pair.client, IPPROTO_TCP, TCP_CORK, &on, 1) == -1 && errno == EINVAL);
    CHECK(setsockopt(-1, IPPROTO_TCP, TCP_CORK, &on, sizeof on) == -1 && errno == EBADF);
    datagrams();
    return 0;
}
