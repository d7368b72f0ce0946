// A server that sends its answers in six pieces, and sets TCP_NODELAY too late if told so.
#include "pair.h"

static void flush_chain(int fd) {
    for (int i = 0; i < 6; i++)
        CHECK(send(fd, "0123456789", 10, 0) == 10);
}

int main(int count, char **arguments) {
    struct pair pair = connected();
    int on = 1;
    if (count > 1 && strcmp(arguments[1], "other-side") == 0)
        setsockopt(pair.client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (count > 1 && strcmp(arguments[1], "first") == 0)
        setsockopt(pair.server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (int i = 0; i < 5; i++) {
        CHECK(write(pair.client, "request", 7) == 7);
        take(pair.server, 7);
        flush_chain(pair.server);
        take(pair.client, 60);
        if (i == 0 && count > 1 && strcmp(arguments[1], "late") == 0)
            setsockopt(pair.server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    puts("its own output");
    return count > 1 ? 0 : 7;
}
