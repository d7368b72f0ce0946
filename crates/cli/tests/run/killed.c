// Killed after ten messages, with no chance to say so.
#include "pair.h"

int main(void) {
    struct pair pair = connected();
    for (int i = 0; i < 10; i++) {
        CHECK(write(pair.client, "k", 1) == 1);
        take(pair.server, 1);
        CHECK(write(pair.server, "k", 1) == 1);
        take(pair.client, 1);
    }
    raise(SIGKILL);
    return 0;
}
