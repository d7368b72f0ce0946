// Ends by what a signal says, after the recorder's own process was sent it; and a thread that is cancelled in a call.
#include "pair.h"

static struct pair pair;

static void handle(int number) {
    CHECK(write(pair.client, "s", 1) == 1);
    _exit(40 + (number == SIGTERM));
}

static void *wait_for_data(void *unused) {
    char byte;
    recv(pair.server, &byte, 1, 0);
    return unused;
}

int main(void) {
    pair = connected();
    pthread_t thread;
    void *result;
    pthread_create(&thread, 0, wait_for_data, 0);
    usleep(20000);
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    signal(SIGTERM, handle);
    kill(getppid(), SIGTERM);
    for (;;)
        pause();
}
