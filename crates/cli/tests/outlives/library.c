// What a user wants root to load: it says as whom it was loaded.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

__attribute__((constructor)) static void loaded(void) {
    int fd = open("loaded", O_CREAT | O_WRONLY | O_APPEND, 0666);
    dprintf(fd, "uid %d\n", geteuid());
    close(fd);
}
