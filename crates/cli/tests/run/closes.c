// Closes everything that it has not opened itself, as daemons do.
#include "pair.h"

int main(void) {
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
    close_range(3, ~0U, 0);
    struct pair pair = connected();
    CHECK(pair.client == 4);
    CHECK(write(pair.client, "k", 1) == 1);
    take(pair.server, 1);
    return 0;
}
