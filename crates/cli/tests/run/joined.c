// Five ways to give TCP a message at once.
#include "pair.h"

static void answered(struct pair pair) {
    take(pair.server, 20);
    CHECK(write(pair.server, "k", 1) == 1);
    take(pair.client, 1);
}

int main(void) {
    struct pair pair = connected();
    struct iovec parts[2] = {{"0123456789", 10}, {"0123456789", 10}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    int on = 1, off = 0;
    CHECK(write(pair.client, "01234567890123456789", 20) == 20);
    answered(pair);
    CHECK(writev(pair.client, parts, 2) == 20);
    answered(pair);
    CHECK(sendmsg(pair.client, &message, 0) == 20);
    answered(pair);
    send(pair.client, "0123456789", 10, MSG_MORE);
    send(pair.client, "0123456789", 10, 0);
    answered(pair);
    setsockopt(pair.client, IPPROTO_TCP, TCP_CORK, &on, sizeof on);
    write(pair.client, "0123456789", 10);
    write(pair.client, "0123456789", 10);
    setsockopt(pair.client, IPPROTO_TCP, TCP_CORK, &off, sizeof off);
    answered(pair);
    return 0;
}
