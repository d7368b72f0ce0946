// Eight threads, each with a connection of its own.
#include "pair.h"

static void *talk(void *unused) {
    struct pair pair = connected();
    for (int i = 0; i < 100; i++) {
        CHECK(send(pair.client, "k", 1, 0) == 1);
        take(pair.server, 1);
        CHECK(send(pair.server, "k", 1, 0) == 1);
        take(pair.client, 1);
    }
    return unused;
}

int main(void) {
    pthread_t threads[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], 0, talk, 0);
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], 0);
    return 0;
}
