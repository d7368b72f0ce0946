// Writes by stdio, whose calls stay inside the C library.
#include "pair.h"

int main(void) {
    struct pair pair = connected();
    CHECK(write(pair.client, "k", 1) == 1);
    FILE *stream = fdopen(dup(pair.client), "w");
    fprintf(stream, "unseen");
    fflush(stream);
    take(pair.server, 7);
    close(pair.client);
    return 0;
}
