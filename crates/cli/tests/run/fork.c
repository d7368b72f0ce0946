// The child serves, and so does its child, which was made behind the C library's back; then a program that was executed.
#include "pair.h"

int main(int count, char **arguments) {
    if (count > 1) {
        CHECK(write(atoi(arguments[1]), "executed", 8) == 8);
        return 0;
    }
    struct pair pair = connected();
    if (fork() == 0) {
        CHECK(write(pair.server, "forked", 6) == 6);
        if (syscall(SYS_fork) == 0) {
            CHECK(write(pair.server, "again", 5) == 5);
            char number[12];
            snprintf(number, sizeof number, "%d", dup2(pair.server, 77));
            execl("/proc/self/exe", "fork", number, (char *)0);
        }
        wait(0);
        _exit(0);
    }
    wait(0);
    CHECK(write(pair.server, "parent", 6) == 6);
    take(pair.client, 6 + 5 + 8 + 6);
    return 0;
}
