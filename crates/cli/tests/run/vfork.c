// A child of vfork has its parent's memory, and descriptors of its own.
#include "pair.h"

int main(void) {
    struct pair pair = connected();
    CHECK(write(pair.client, "before", 6) == 6);
    if (vfork() == 0) {
        // The parent's socket is a file here.
        dup2(open("/dev/null", O_WRONLY), pair.client);
        write(pair.client, "nowhere", 7);
        close(pair.server);
        _exit(0);
    }
    wait(0);
    CHECK(write(pair.client, "behind", 6) == 6);
    take(pair.server, 12);
    return 0;
}
