// A client that works between the two pieces of a request. It says how long the second piece and its answer took, in
// microseconds, and how long the whole exchanges.
#include "pair.h"
#include <time.h>

enum { EXCHANGES = 10, WORK = 20000 };

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000 + time.tv_nsec / 1000;
}

static void *serve(void *argument) {
    int fd = *(int *)argument;
    for (int i = 0; i < EXCHANGES; i++) {
        take(fd, 30);
        CHECK(write(fd, "an answer!", 10) == 10);
    }
    return 0;
}

int main(void) {
    struct pair pair = connected();
    pthread_t server;
    CHECK(pthread_create(&server, 0, serve, &pair.server) == 0);
    long held = 0, whole = 0;
    for (int i = 0; i < EXCHANGES; i++) {
        long begun = now();
        CHECK(send(pair.client, "0123456789", 10, 0) == 10);
        usleep(WORK);
        long written = now();
        CHECK(send(pair.client, "01234567890123456789", 20, 0) == 20);
        take(pair.client, 10);
        held += now() - written;
        whole += now() - begun;
    }
    printf("%ld %ld\n", held, whole);
    return 0;
}
