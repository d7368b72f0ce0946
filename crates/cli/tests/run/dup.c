// A socket by other numbers, and its number for something else.
#include "pair.h"

int main(void) {
    struct pair pair = connected();
    int copies[] = {dup(pair.client), dup2(pair.client, 50), dup3(pair.client, 51, 0), fcntl(pair.client, F_DUPFD, 60)};
    for (int i = 0; i < 4; i++)
        CHECK(write(copies[i], "k", 1) == 1);
    int number = pair.client;
    close(number);
    CHECK(open("/dev/null", O_WRONLY) == number && write(number, "file", 4) == 4);
    take(pair.server, 4);
    // Closed by stdio: the number is free, and nobody called close().
    FILE *stream = fdopen(copies[0], "w");
    number = copies[0];
    fclose(stream);
    CHECK(open("/dev/null", O_WRONLY) == number && write(number, "file", 4) == 4);
    return 0;
}
